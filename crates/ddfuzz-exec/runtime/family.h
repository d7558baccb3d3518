/* Whether a run had descendants. */
#ifndef DDFUZZ_FAMILY_H
#define DDFUZZ_FAMILY_H

#include <sys/types.h>

/* Waits until `child` has ended or is stopped, and leaves that to be collected. Whether it had
 * ended, and it, or one that it reaped, had reaped a child: the kernel adds up the page faults of
 * the reaped, and nobody lives without one. Those whose parent ignored their ends are not told. */
int family_reaped(pid_t child);

#endif
