/* The processes that outlive whatever happens to ddfuzz or the server just long enough to kill
 * all descendants. */
#ifndef DDFUZZ_SUPERVISOR_H
#define DDFUZZ_SUPERVISOR_H

#include <sys/types.h>

#include "namespaces.h"

/* Splits the caller into two supervisors and their descendant, the only one in which this returns,
 * and to which it gives its parent, the inner supervisor; -1 and an errno where there was no room for
 * them, or `wanted` was refused. The outer one stays outside of all namespaces but the user's. */
pid_t start_supervisors(const struct isolation *wanted);

#endif
