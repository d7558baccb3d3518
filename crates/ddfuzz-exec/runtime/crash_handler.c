/* The handler takes a snapshot and then raises the signal again, so that the kernel does what it
 * would have done without the handler: kills the process, or calls the target's handler with the
 * stack and mask that the target has requested. */
#define _GNU_SOURCE
#include "crash_handler.h"
#include "snapshot.h"

#ifdef __x86_64__

#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <ucontext.h>

#ifndef SA_RESTORER
#define SA_RESTORER 0x04000000
#endif

/* struct sigaction as the kernel takes it. */
struct kernel_action {
    void (*handler)(int, siginfo_t *, void *);
    unsigned long flags;
    void (*restorer)(void);
    signal_set mask;
};

__thread struct crash_thread crash_thread;

static const int handled[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGSYS, SIGTRAP};
enum { HANDLED = sizeof handled / sizeof *handled, SIGNALS = 65 };

/* The target's actions; `handing` has the action at the time when a signal is passed to the
 * target. */
static struct sigaction wanted[SIGNALS], handing[SIGNALS];
static volatile int in_place;

/* The return address of handlers. Its code is the C library's, by which unwinders recognise a
 * signal frame. */
void ddfuzz_restore(void) __attribute__((visibility("hidden")));
__asm__(".text\n"
        ".hidden ddfuzz_restore\n"
        ".type ddfuzz_restore, @function\n"
        "  nop\n" /* unwinders look one byte before it */
        "ddfuzz_restore:\n"
        "  mov $15, %rax\n"
        "  syscall\n"
        ".size ddfuzz_restore, . - ddfuzz_restore\n");

static signal_set bit(int signal)
{
    return (signal_set)1 << (signal - 1);
}

signal_set crash_raised(void)
{
    return bit(SIGSEGV) | bit(SIGBUS) | bit(SIGFPE) | bit(SIGILL) | bit(SIGSYS) | bit(SIGTRAP);
}

int crash_handles(int signal)
{
    for (int i = 0; in_place && i < HANDLED; i++)
        if (handled[i] == signal)
            return 1;
    return 0;
}

static void set_action(int signal, void (*handler)(int, siginfo_t *, void *), unsigned long flags,
                       signal_set mask)
{
    struct kernel_action action = {handler, flags | SA_RESTORER, ddfuzz_restore, mask};
    raw_call(SYS_rt_sigaction, signal, (long)&action, 0, sizeof action.mask);
}

static void on_signal(int signal, siginfo_t *info, void *context);

/* Installs the handler for `signal`. Faults of the snapshot itself stay unblocked. */
static void arm(int signal)
{
    set_action(signal, on_signal, SA_SIGINFO | SA_ONSTACK | SA_NODEFER | SA_RESTART,
               ~(bit(SIGSEGV) | bit(SIGBUS)));
}

/* Whether the processor will raise the signal again when the instruction is repeated. */
static int comes_by_itself(int signal, const siginfo_t *info)
{
    int by_processor =
        signal == SIGSEGV || signal == SIGBUS || signal == SIGFPE || signal == SIGILL;
    return by_processor && info->si_code > 0;
}

static void come_again(int signal, siginfo_t *info)
{
    if (comes_by_itself(signal, info))
        return;
    signal_set all = ~(signal_set)0;
    raw_call(SYS_rt_sigprocmask, SIG_BLOCK, (long)&all, 0, sizeof all);
    raw_call(SYS_rt_tgsigqueueinfo, raw_call(SYS_getpid, 0, 0, 0, 0),
              raw_call(SYS_gettid, 0, 0, 0, 0), signal, (long)info);
}

/* Called by the kernel in place of the target's handler; restores ddfuzz's handler and calls the
 * target's. */
static void on_behalf(int signal, siginfo_t *info, void *context)
{
    ucontext_t *interrupted = context;
    struct sigaction action = handing[signal];
    if (action.sa_flags & SA_RESETHAND)
        wanted[signal].sa_handler = SIG_DFL;
    arm(signal);
    if (interrupted->uc_stack.ss_sp == crash_thread.theirs.ss_sp && crash_thread.ours.ss_sp)
        interrupted->uc_stack = crash_thread.ours;
    action.sa_sigaction(signal, info, context);
}

static void hand_on(int signal, siginfo_t *info, ucontext_t *interrupted)
{
    signal_set mask;
    handing[signal] = wanted[signal];
    unsigned long flags = (unsigned long)(unsigned)handing[signal].sa_flags;
    memcpy(&mask, &handing[signal].sa_mask, sizeof mask);
    flags &= ~(unsigned long)(unsigned)SA_RESETHAND;
    set_action(signal, on_behalf, flags | SA_SIGINFO, mask);
    if (flags & SA_ONSTACK)
        interrupted->uc_stack = crash_thread.theirs;
    come_again(signal, info);
}

/* Whether the signal interrupted the target's handler of an earlier signal on its alternate
 * stack. The earlier signal is the relevant one, and the stack may be too small for a snapshot. */
static int is_in_handler(const ucontext_t *interrupted)
{
    const stack_t *stack = &crash_thread.theirs;
    uintptr_t sp = (uintptr_t)interrupted->uc_mcontext.gregs[REG_RSP];
    return stack->ss_sp && sp - (uintptr_t)stack->ss_sp < stack->ss_size;
}

/* Unblocks faults. They may be blocked in the target's handler, and the kernel kills on a
 * blocked fault. */
static void let_faults_through(const ucontext_t *interrupted)
{
    signal_set mask, faults = bit(SIGSEGV) | bit(SIGBUS);
    memcpy(&mask, &interrupted->uc_sigmask, sizeof mask);
    if (mask & faults)
        raw_call(SYS_rt_sigprocmask, SIG_UNBLOCK, (long)&faults, 0, sizeof faults);
}

static void on_signal(int signal, siginfo_t *info, void *context)
{
    snapshot_guard(context);
    ucontext_t *interrupted = context;
    let_faults_through(interrupted);
    int sent = info->si_code <= 0, blocked = (crash_thread.blocked & bit(signal)) != 0;
    void (*handler)(int) = wanted[signal].sa_handler;
    if (sent && blocked) {
        /* The signal stays pending until the target unblocks it. */
        come_again(signal, info);
        signal_set mask;
        memcpy(&mask, &interrupted->uc_sigmask, sizeof mask);
        mask |= bit(signal);
        memcpy(&interrupted->uc_sigmask, &mask, sizeof mask);
        return;
    }
    if (sent && handler == SIG_IGN)
        return;
    /* A signal of the processor that is blocked or ignored kills the process. */
    int fatal = blocked || handler == SIG_DFL || handler == SIG_IGN;
    if (!is_in_handler(interrupted)) {
        struct snapshot_slot *slot = snapshot_begin(signal, info, context, fatal);
        if (slot)
            snapshot_rest(slot);
    } else if (fatal) {
        snapshot_dies_of(signal);
    }
    if (!fatal) {
        hand_on(signal, info, interrupted);
        return;
    }
    set_action(signal, NULL /* SIG_DFL */, 0, 0);
    come_again(signal, info);
}

void crash_exchange(int signal, const struct sigaction *action, struct sigaction *before)
{
    struct sigaction was = wanted[signal];
    if (action)
        wanted[signal] = *action;
    if (before)
        *before = was;
}

void crash_use_stack(void *memory)
{
    stack_t stack = {.ss_sp = memory, .ss_size = CRASH_STACK};
    if (raw_call(SYS_sigaltstack, (long)&stack, (long)&crash_thread.theirs, 0, 0) == 0)
        crash_thread.ours = stack;
}

void crash_prepare(void)
{
    void *stack = mmap(NULL, CRASH_STACK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
                       0);
    if (stack == MAP_FAILED)
        return;
    crash_use_stack(stack);
    for (int i = 0; i < HANDLED; i++) {
        sigaction(handled[i], NULL, &wanted[handled[i]]);
        arm(handled[i]);
    }
    in_place = 1;
}

#else

__thread struct crash_thread crash_thread;

int crash_handles(int signal)
{
    (void)signal;
    return 0;
}

void crash_exchange(int signal, const struct sigaction *wanted, struct sigaction *before)
{
    (void)signal, (void)wanted, (void)before;
}

signal_set crash_raised(void)
{
    return 0;
}

void crash_use_stack(void *memory)
{
    (void)memory;
}

void crash_prepare(void) {}

#endif
