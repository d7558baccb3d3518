/* Preloaded into runs that take a snapshot when they crash: wraps the functions by which a
 * target could replace the snapshot handler. The wrappers return what the target would have got
 * without the handler. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#include "snapshot.h"
#include "crash_handler.h"
#include "preload.h"

#define EXPORTED __attribute__((visibility("default")))

/* The next definition of a function that this library hides; ISO C has no conversion between the
 * two pointers. */
static void find(void *function, const char *name)
{
    void *found = dlsym(RTLD_NEXT, name);
    memcpy(function, &found, sizeof found);
}

EXPORTED int sigaction(int signal, const struct sigaction *restrict wanted,
                       struct sigaction *restrict before)
{
    static int (*real)(int, const struct sigaction *, struct sigaction *);
    if (crash_handles(signal)) {
        crash_exchange(signal, wanted, before);
        return 0;
    }
    if (!real)
        find(&real, "sigaction");
    return real(signal, wanted, before);
}

static sighandler_t exchange(int signal, sighandler_t handler, int flags, int masks_itself)
{
    struct sigaction wanted = {.sa_handler = handler, .sa_flags = flags}, before;
    if (handler == SIG_ERR) {
        errno = EINVAL;
        return SIG_ERR;
    }
    sigemptyset(&wanted.sa_mask);
    if (masks_itself)
        sigaddset(&wanted.sa_mask, signal);
    crash_exchange(signal, &wanted, &before);
    return before.sa_handler;
}

EXPORTED sighandler_t signal(int number, sighandler_t handler)
{
    static sighandler_t (*real)(int, sighandler_t);
    if (crash_handles(number))
        return exchange(number, handler, SA_RESTART, 1);
    if (!real)
        find(&real, "signal");
    return real(number, handler);
}

EXPORTED sighandler_t bsd_signal(int number, sighandler_t handler)
{
    return signal(number, handler);
}

EXPORTED sighandler_t __sysv_signal(int number, sighandler_t handler)
{
    static sighandler_t (*real)(int, sighandler_t);
    if (crash_handles(number))
        return exchange(number, handler, (int)(SA_RESETHAND | SA_NODEFER), 0);
    if (!real)
        find(&real, "__sysv_signal");
    return real(number, handler);
}

static int on_their_stack(void)
{
    const stack_t *stack = &crash_thread.theirs;
    uintptr_t here = (uintptr_t)__builtin_frame_address(0), at = (uintptr_t)stack->ss_sp;
    return !(stack->ss_flags & SS_DISABLE) && here - at < stack->ss_size;
}

EXPORTED int sigaltstack(const stack_t *restrict wanted, stack_t *restrict before)
{
    static int (*real)(const stack_t *, stack_t *);
    if (!crash_thread.ours.ss_sp) {
        if (!real)
            find(&real, "sigaltstack");
        return real(wanted, before);
    }
    stack_t was = crash_thread.theirs;
    int busy = on_their_stack();
    if (wanted) {
        int disables = wanted->ss_flags & SS_DISABLE;
        if (busy || wanted->ss_flags & ~(SS_DISABLE | SS_ONSTACK | (int)(1u << 31))) {
            errno = busy ? EPERM : EINVAL;
            return -1;
        }
        if (!disables && wanted->ss_size < 2048) {
            errno = ENOMEM;
            return -1;
        }
        crash_thread.theirs = *wanted;
        crash_thread.theirs.ss_flags = disables ? SS_DISABLE : wanted->ss_flags & ~SS_ONSTACK;
        if (disables)
            crash_thread.theirs.ss_sp = NULL, crash_thread.theirs.ss_size = 0;
    }
    if (before) {
        *before = was;
        before->ss_flags |= busy ? SS_ONSTACK : 0;
    }
    return 0;
}

/* Converts the C library's signal set, which is longer, to the kernel's. */
static signal_set from_set(const sigset_t *set)
{
    signal_set kernels;
    memcpy(&kernels, set, sizeof kernels);
    return kernels;
}

static int change_mask(int how, const sigset_t *wanted, sigset_t *before,
                       int (*real)(int, const sigset_t *, sigset_t *))
{
    signal_set was = crash_thread.blocked, raised = crash_raised();
    sigset_t passed;
    if (wanted) {
        signal_set asked = from_set(wanted), left = asked;
        /* In a handler of the target, the kernel blocks signals: unblocking them is passed on. */
        if (how != SIG_UNBLOCK)
            left &= ~raised;
        memset(&passed, 0, sizeof passed);
        memcpy(&passed, &left, sizeof left);
        asked &= raised;
        if (how == SIG_BLOCK)
            crash_thread.blocked = was | asked;
        else if (how == SIG_UNBLOCK)
            crash_thread.blocked = was & ~asked;
        else if (how == SIG_SETMASK)
            crash_thread.blocked = asked;
    }
    int result = real(how, wanted ? &passed : NULL, before);
    if (result != 0)
        crash_thread.blocked = was;
    else if (before) {
        signal_set seen = from_set(before) | was;
        memcpy(before, &seen, sizeof seen);
    }
    return result;
}

EXPORTED int sigprocmask(int how, const sigset_t *restrict wanted, sigset_t *restrict before)
{
    static int (*real)(int, const sigset_t *, sigset_t *);
    if (!real)
        find(&real, "sigprocmask");
    return crash_handles(SIGSEGV) ? change_mask(how, wanted, before, real)
                                  : real(how, wanted, before);
}

EXPORTED int pthread_sigmask(int how, const sigset_t *restrict wanted, sigset_t *restrict before)
{
    static int (*real)(int, const sigset_t *, sigset_t *);
    if (!real)
        find(&real, "pthread_sigmask");
    return crash_handles(SIGSEGV) ? change_mask(how, wanted, before, real)
                                  : real(how, wanted, before);
}

/* What a new thread runs; stored at the lowest addresses of its alternate stack, which are used
 * last. */
struct beginning {
    void *(*run)(void *);
    void *argument;
    signal_set blocked;
};

static void take_stack_away(void *memory)
{
    stack_t none = {.ss_flags = SS_DISABLE};
    crash_thread.ours.ss_sp = NULL;
    raw_call(SYS_sigaltstack, (long)&none, 0, 0, 0);
    munmap(memory, CRASH_STACK);
}

static void *begin_thread(void *memory)
{
    struct beginning begin = *(struct beginning *)memory;
    void *result;
    crash_use_stack(memory);
    crash_thread.blocked = begin.blocked;
    pthread_cleanup_push(take_stack_away, memory);
    result = begin.run(begin.argument);
    pthread_cleanup_pop(1);
    return result;
}

EXPORTED int pthread_create(pthread_t *restrict thread, const pthread_attr_t *restrict attributes,
                            void *(*run)(void *), void *restrict argument)
{
    static int (*real)(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);
    if (!real)
        find(&real, "pthread_create");
    void *memory = MAP_FAILED;
    if (crash_handles(SIGSEGV))
        memory = mmap(NULL, CRASH_STACK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
                      0);
    if (memory == MAP_FAILED)
        return real(thread, attributes, run, argument);
    *(struct beginning *)memory = (struct beginning){run, argument, crash_thread.blocked};
    int result = real(thread, attributes, begin_thread, memory);
    if (result != 0)
        munmap(memory, CRASH_STACK);
    return result;
}

__attribute__((constructor)) static void begin(void)
{
    preload_forget();
    if (snapshot_prepare())
        crash_prepare();
}
