/* Which parts of a sandbox this system supports. */
#ifndef DDFUZZ_SUPPORT_H
#define DDFUZZ_SUPPORT_H

/* Tries each part in a child process, and prints a line with its name and an errno, which is 0
 * if the part works. `directory`: where a file system may be mounted. */
int report_support(const char *directory);

#endif
