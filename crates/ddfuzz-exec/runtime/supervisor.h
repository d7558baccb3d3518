/* The supervisors: processes that survive the death of ddfuzz or of the server until they have
 * killed all descendants. */
#ifndef DDFUZZ_SUPERVISOR_H
#define DDFUZZ_SUPERVISOR_H

#include <sys/types.h>

#include "namespaces.h"

/* Forks the caller into two supervisors and their descendant. Returns only in the descendant:
 * the process id of its parent, the inner supervisor; or -1 and errno if forking failed or
 * `wanted` was refused. The outer supervisor stays outside of all namespaces but the user
 * namespace. */
pid_t start_supervisors(const struct isolation *wanted);

#endif
