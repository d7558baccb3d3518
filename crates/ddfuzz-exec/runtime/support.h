/* Which parts of a sandbox the system sandbox_parts. */
#ifndef DDFUZZ_SUPPORT_H
#define DDFUZZ_SUPPORT_H

/* Tries each for real, in a child, and says on stdout what came of it: a line with a name and an
 * errno, which is 0 where it works. `directory`: where something may be mounted. */
int report_support(const char *directory);

#endif
