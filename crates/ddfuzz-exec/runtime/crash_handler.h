/* The handler that copies, and what the target believes its own handlers to be. */
#ifndef DDFUZZ_CRASH_HANDLER_H
#define DDFUZZ_CRASH_HANDLER_H

#include <signal.h>
#include <stddef.h>
#include <stdint.h>

/* What the kernel takes for a set of signals. */
typedef uint64_t signal_set;

/* What each thread keeps. */
struct crash_thread {
    stack_t theirs;     /* the target's own alternate stack, of which the kernel does not know */
    stack_t ours;
    signal_set blocked; /* those that the target believes to have blocked */
};
extern __thread struct crash_thread crash_thread
    __attribute__((tls_model("initial-exec"), visibility("hidden")));

/* Puts the handler in place for this process and thread. */
void crash_prepare(void);

/* Gives this thread a stack to copy on; `memory` has CRASH_STACK bytes. */
enum { CRASH_STACK = 64 << 10 };
void crash_use_stack(void *memory);

/* Whether the handler stands for this signal; then these say and keep what the target wants. */
int crash_handles(int signal);
void crash_exchange(int signal, const struct sigaction *wanted, struct sigaction *before);

/* Of those that the handler must get, whatever the target blocks: what the processor raises. */
signal_set crash_raised(void);

#endif
