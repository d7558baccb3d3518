/* The processes that outlive whatever happens to ddfuzz or the server just long enough to kill
 * all descendants. */
#ifndef DDFUZZ_KEEPER_H
#define DDFUZZ_KEEPER_H

#include <sys/types.h>

/* Splits the caller into two keepers and their descendant, the only one in which this returns,
 * and to which it gives its parent, the inner keeper; -1 where there was no room for them. */
pid_t descend_from_keepers(void);

#endif
