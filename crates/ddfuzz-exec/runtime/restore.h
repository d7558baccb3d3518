/* Runs many inputs in one process and puts back what each run has changed: the way of execution
 * `snapshot`. Three processes take part:
 *
 *   the server   stands at the fork point (defer.c) and never runs the program on
 *   the runner   its child, which runs the program on from the fork point for one input after the
 *                other. Before a system call that cannot be undone it refuses the run
 *   a fork       of the server, for each run that the runner refuses; its result is the one that
 *                counts
 *
 * Everything of the runner that is not the program's lies in one block of addresses, the reserve. */
#ifndef DDFUZZ_RESTORE_H
#define DDFUZZ_RESTORE_H

#include <stdint.h>
#include <ucontext.h>

/* Descriptors of the server and the runner, above those of protocol.h. */
enum {
    FD_REFUSED = 200,       /* server: read end of the runner's messages */
    FD_REFUSALS = 201,      /* runner: write end */
    FD_BACKUPS = 204,       /* runner: first of the duplicates of the program's descriptors */
    FD_LAST_RUNNERS = 254,
};

/* Why a program cannot be run by a runner: `detail` of a hello with TROUBLE_UNFIT. */
enum unfit {
    UNFIT_NONE = 0,
    UNFIT_POINT = 1,       /* its runs are not forked behind `main`, or each one crashes */
    UNFIT_ADDRESSES = 2,   /* the addresses of the reserve are taken */
    UNFIT_SHARED = 3,      /* it has writable memory that is shared */
    UNFIT_SIZE = 4,        /* it has more writable memory than is copied */
    UNFIT_DESCRIPTORS = 5, /* it has too many descriptors open */
    UNFIT_FILTER = 6,      /* the kernel refuses to filter system calls */
    UNFIT_SHADOW = 7,      /* it has a shadow stack */
    UNFIT_MEMORY = 8,      /* memory or /proc cannot be had */
    UNFIT_ENDED = 9,       /* the runner ended before its first run */
    UNFIT_OUTPUTS = 10,    /* its outputs do not lead to /dev/null */
};

/* Why a run was refused, where it is not the number of a system call. */
enum refusal {
    REFUSED_ASKED = 0x10000,     /* the request wants a fork */
    REFUSED_CRASH = 0x10001,     /* the run crashed */
    REFUSED_ARCH = 0x10002,      /* a system call of another ABI */
    REFUSED_INTEGRITY = 0x10003, /* the run wrote into the runner's own memory */
};

/* The runner's first message, and then one for each run that it refuses. */
struct runner_message {
    uint64_t seq;    /* number of the run; 0: the runner is ready, or unfit */
    uint32_t reason; /* an `enum unfit` where seq is 0; else the number of a system call, or an
                        `enum refusal` */
    uint32_t captured; /* whether the request wants the outputs captured */
};

/* In the server, once: copies the program's writable memory. `context` is the program at the fork
 * point, and `error` its errno. Returns why the program is unfit, or UNFIT_NONE. */
enum unfit restore_prepare(const ucontext_t *context, int error);

/* In a child of the server: becomes the runner. */
_Noreturn void restore_run(void);

/* In a fork of the server that runs the program: gives the reserve back. */
void restore_forget(void);

#endif
