/* What the seat takes on before it runs anything of the target's. */
#ifndef DDFUZZ_RLIMITS_H
#define DDFUZZ_RLIMITS_H

#include <sys/resource.h>
#include <sys/types.h>

struct confinement {
    const char *directory;
    int cgroup; /* its file of processes, opened; or -1 */
    uid_t uid;
    gid_t gid;
    int drop, fixed_addresses;
    rlim_t data, file_size, processes; /* 0: no limit */
};

/* Takes it on. Where something is refused that cannot be done without: the errno; else 0. */
int confine(const struct confinement *wanted);

#endif
