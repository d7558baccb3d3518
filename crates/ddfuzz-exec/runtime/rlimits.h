/* Limits, identity and directory that the target's process gets before it runs the program. */
#ifndef DDFUZZ_RLIMITS_H
#define DDFUZZ_RLIMITS_H

#include <sys/resource.h>
#include <sys/types.h>

struct confinement {
    const char *directory;
    int cgroup; /* the opened file cgroup.procs, or -1 */
    uid_t uid;
    gid_t gid;
    int drop, fixed_addresses;
    rlim_t data, file_size, processes; /* 0 means unlimited */
};

/* Applies all of them. Returns 0, or the errno of a failure that matters. */
int confine(const struct confinement *wanted);

#endif
