/* The handler that copies, and what the target believes its own handlers to be. */
#ifndef DDFUZZ_DYING_H
#define DDFUZZ_DYING_H

#include <signal.h>
#include <stddef.h>
#include <stdint.h>

/* What the kernel takes for a set of signals. */
typedef uint64_t signal_set;

/* What each thread keeps. */
struct dying_thread {
    stack_t theirs;     /* the target's own alternate stack, of which the kernel does not know */
    stack_t ours;
    signal_set blocked; /* those that the target believes to have blocked */
};
extern __thread struct dying_thread dying_thread
    __attribute__((tls_model("initial-exec"), visibility("hidden")));

/* Puts the handler in place for this process and thread. */
void dying_prepare(void);

/* Gives this thread a stack to copy on; `memory` has DYING_STACK bytes. */
enum { DYING_STACK = 64 << 10 };
void dying_use_stack(void *memory);

/* Whether the handler stands for this signal; then these say and keep what the target wants. */
int dying_handles(int signal);
void dying_exchange(int signal, const struct sigaction *wanted, struct sigaction *before);

/* Of those that the handler must get, whatever the target blocks: what the processor raises. */
signal_set dying_raised(void);

#endif
