/* Defers the fork point of an injected server: from `main` on the program runs once, up to the
 * first call whose result may differ from run to run. Each run is then forked there. */
#ifndef DDFUZZ_DEFER_H
#define DDFUZZ_DEFER_H

#include <sys/types.h>
#include <ucontext.h>

/* Where the fork point is, if it is not before a system call. */
enum {
    FORK_AT_CLOCK = 0xffff, /* at an instruction that reads the time */
    FORK_AT_FAULT = 0xfffe, /* at an instruction that faults */
    FORK_AT_TIMER = 0xfffd, /* where the program was after half a second of CPU time */
};

/* Begins to watch the calls of this process, which continues into the program's `main`. `inputs`
 * names the input files, as DEVICE:INODE,... in decimal. At the fork point, `serve` is called with
 * the number of the system call there, or a number of the enum above; it returns only in the
 * children that run the program on. `freeze`: whether runs may share the random numbers, the times
 * and the process id that the program reads before. Returns 0 if calls cannot be watched here. */
int defer_fork(const char *inputs, int freeze, void (*serve)(int point));

/* Forks at the fork point, as fork does, but without the program's own fork handlers, and also
 * inside a function that holds locks of the C library. */
pid_t defer_new_child(void);

/* The program at the fork point, with its own signal mask and stack; NULL before the fork point.
 * To return to it is to run the program on. `error` is set to its errno. */
const ucontext_t *defer_context(int *error);

/* The same state as defer_context returns, for a child, which may change it before it continues the
 * program. */
ucontext_t *defer_continuation(void);

/* A system call that is not watched, and leaves errno as it is; returns a negative errno on
 * failure. Its instruction lies between the two addresses. */
long defer_call(long number, long a, long b, long c, long d, long e, long f);
extern const char defer_text[], defer_text_end[];

#endif
