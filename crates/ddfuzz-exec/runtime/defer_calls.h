/* Which calls of a program are performed before its fork point (defer.h). */
#ifndef DDFUZZ_DEFER_CALLS_H
#define DDFUZZ_DEFER_CALLS_H

#include <signal.h>
#include <stdint.h>
#include <ucontext.h>

struct kernel_action {
    void (*handler)(int, siginfo_t *, void *);
    unsigned long flags;
    void (*restorer)(void);
    unsigned long mask;
};

/* The signals by which calls are watched; the program's actions for them, and its signal stack, which
 * take effect at the fork point. */
enum { WATCHED = 7 };
extern const int defer_watched[WATCHED];
extern struct kernel_action defer_before[WATCHED];
extern stack_t defer_stack_before;
unsigned long defer_watched_mask(void);

/* Whether runs share the random numbers, the times and the process id that the program reads before
 * its first use of the input. */
extern int defer_frozen;

/* Reads which files are input, and what else changes from run to run; `inputs` as for defer_fork.
 * Returns 0 if that cannot be found out. */
int defer_know_calls(const char *inputs);

/* Performs the call of a SIGSYS and sets its result. Returns 0, and does nothing, if the call is the
 * fork point. */
int defer_performs(const siginfo_t *info, ucontext_t *context);

static inline int defer_is_within(uintptr_t address, uintptr_t begin, uintptr_t length)
{
    return begin && address - begin < length;
}

#endif
