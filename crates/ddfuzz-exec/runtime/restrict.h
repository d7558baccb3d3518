/* Restrictions of a sandboxed target: writable files, allowed system calls, and rlimits. ddfuzz
 * makes the rules (crates/ddfuzz-exec/src/sandbox/). */
#ifndef DDFUZZ_RESTRICT_H
#define DDFUZZ_RESTRICT_H

#include <stdint.h>

struct restrictions {
    int strict;         /* whether to lower the rlimits */
    uint64_t access;    /* Landlock access rights in the directories `open`; 0 without Landlock */
    const char *const *open;
    int open_count;
    int filtered;       /* whether FD_FILTERS has system call filters */
};

/* Each function returns -1 and sets errno if the kernel refuses. */
int restrict_limits(const struct restrictions *wanted);
int restrict_files(const struct restrictions *wanted);
/* Must be the last call: later system calls are filtered, too. */
int restrict_calls(const struct restrictions *wanted);

#endif
