/* The processes that outlive whatever happens to ddfuzz or the server just long enough to kill
 * all descendants. */
#ifndef DDFUZZ_KEEPER_H
#define DDFUZZ_KEEPER_H

#include <sys/types.h>

#include "isolate.h"

/* Splits the caller into two keepers and their descendant, the only one in which this returns,
 * and to which it gives its parent, the inner keeper; -1 and an errno where there was no room for
 * them, or `wanted` was refused. The outer one stays outside of all namespaces but the user's. */
pid_t descend_from_keepers(const struct isolation *wanted);

#endif
