/* The signal handler that takes snapshots, and the signal state that the target believes to have
 * set. */
#ifndef DDFUZZ_CRASH_HANDLER_H
#define DDFUZZ_CRASH_HANDLER_H

#include <signal.h>
#include <stddef.h>
#include <stdint.h>

/* A set of signals, as the kernel represents it. */
typedef uint64_t signal_set;

/* Signal state of one thread. */
struct crash_thread {
    stack_t theirs;     /* the target's alternate stack, which the kernel does not know */
    stack_t ours;
    signal_set blocked; /* signals that the target believes to have blocked */
};
extern __thread struct crash_thread crash_thread
    __attribute__((tls_model("initial-exec"), visibility("hidden")));

/* Installs the handler for this process, and the alternate stack for this thread. */
void crash_prepare(void);

/* Sets `memory`, which has CRASH_STACK bytes, as this thread's alternate stack. */
enum { CRASH_STACK = 64 << 10 };
void crash_use_stack(void *memory);

/* Whether ddfuzz's handler handles this signal. If so, crash_exchange stores the target's action
 * for the signal and returns the previous one. */
int crash_handles(int signal);
void crash_exchange(int signal, const struct sigaction *wanted, struct sigaction *before);

/* The signals that the processor raises, which the handler must get even if the target blocks
 * them. */
signal_set crash_raised(void);

#endif
