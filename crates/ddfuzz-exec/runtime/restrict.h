/* What a target in a sandbox may still do, where it stands: files that it may write, system calls
 * that it may make, and rlimits. ddfuzz makes the rules (crates/ddfuzz-exec/src/sandbox/). */
#ifndef DDFUZZ_RESTRICT_H
#define DDFUZZ_RESTRICT_H

#include <stdint.h>

struct restrictions {
    int strict;         /* rlimits */
    uint64_t access;    /* to files of these directories, of a Landlock ruleset; 0: there is none */
    const char *const *open;
    int open_count;
    int filtered;       /* there are filters of system calls */
};

/* Each gives -1 and an errno where the system refuses. */
int restrict_limits(const struct restrictions *wanted);
int restrict_files(const struct restrictions *wanted);
/* The last: what comes later is filtered, too. */
int restrict_calls(const struct restrictions *wanted);

#endif
