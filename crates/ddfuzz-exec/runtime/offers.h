/* Which parts of a sandbox the system offers. */
#ifndef DDFUZZ_OFFERS_H
#define DDFUZZ_OFFERS_H

/* Tries each for real, in a child, and says on stdout what came of it: a line with a name and an
 * errno, which is 0 where it works. `directory`: where something may be mounted. */
int offers_tell(const char *directory);

#endif
