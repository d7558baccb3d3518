/* How it works: Syscall User Dispatch (Linux 5.11) turns each system call of the program into a
 * SIGSYS. The handler performs those whose result depends on nothing but the start of the program
 * and whose effects a fork copies (defer_calls.c). Any other call is the fork point: the
 * handler undoes what it has set up and serves, and in each child it returns to the system call
 * instruction, which then runs as if nothing had happened. Reading the time needs no system call:
 * while calls are watched, the kernel's time page (vvar) and the time stamp counter are closed, and
 * the SIGSEGV of a reader is the fork point, too. So is any other fault, which then kills each run,
 * and the end of half a second of CPU time, for programs that compute first or hang.
 *
 * Invariants:
 *   - the program's heap and stack are as without a handler: no allocation, an own signal stack
 *   - a child sees none of it: dispatch (reset by fork), handlers, signal stack, timer and the time
 *     page are restored before the first fork
 *   - a child keeps the thread id that the C library has noted for this process: locks that the
 *     library holds at the fork point are given back by it */
#define _GNU_SOURCE
#include "defer.h"
#include "blocks.h"
#include "defer_calls.h"
#include "defer_files.h"

#if defined(__x86_64__) && defined(__linux__)
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <ucontext.h>
#include <unistd.h>

#ifndef PR_SET_SYSCALL_USER_DISPATCH
#define PR_SET_SYSCALL_USER_DISPATCH 59
#endif
#ifndef PR_GET_TID_ADDRESS
#define PR_GET_TID_ADDRESS 40
#endif
/* CPU time until the fork point, at most. */
#define HALF_A_SECOND 500000

enum { DISPATCH_OFF = 0, DISPATCH_ON = 1, ALLOW = 0, BLOCK = 1 };

/* System calls of this file: not dispatched while they are watched, and errno stays as it is. */
void defer_return(void);
__asm__(".text\n"
        ".hidden defer_text, defer_text_end, defer_call, defer_return\n"
        ".global defer_text, defer_text_end, defer_call, defer_return\n"
        "defer_text:\n"
        "defer_call:\n"
        "    mov %rdi, %rax\n"
        "    mov %rsi, %rdi\n"
        "    mov %rdx, %rsi\n"
        "    mov %rcx, %rdx\n"
        "    mov %r8, %r10\n"
        "    mov %r9, %r8\n"
        "    mov 8(%rsp), %r9\n"
        "    syscall\n"
        "    ret\n"
        "defer_return:\n"
        "    mov $15, %eax\n" /* rt_sigreturn */
        "    syscall\n"
        "    hlt\n"
        "defer_text_end:\n");

static volatile char selector;
static void (*serve_there)(int point);

/* The signal stack of the handlers. */
static char signal_stack[64 << 10];

/* Mappings of the kernel's time page. */
enum { MOST_RANGES = 4 };
static struct range {
    uintptr_t begin, end;
} time_pages[MOST_RANGES];
static int time_page_count;

static void protect_time(int protection)
{
    if (defer_frozen)
        return;
    for (int i = 0; i < time_page_count; i++) {
        struct range *page = &time_pages[i];
        defer_call(SYS_mprotect, (long)page->begin, (long)(page->end - page->begin), protection, 0,
                   0, 0);
    }
    int counter = protection == PROT_NONE ? PR_TSC_SIGSEGV : PR_TSC_ENABLE;
    defer_call(SYS_prctl, PR_SET_TSC, counter, 0, 0, 0, 0);
}

static void set_action(int number, const struct kernel_action *action, struct kernel_action *last)
{
    defer_call(SYS_rt_sigaction, number, (long)action, (long)last, sizeof action->mask, 0, 0);
}

/* Starts the timer of this process's CPU time; 0 stops it. */
static void set_timer(long microseconds)
{
    struct itimerval once = {.it_value = {0, microseconds}};
    defer_call(SYS_setitimer, ITIMER_VIRTUAL, (long)&once, 0, 0, 0, 0);
}

static void stop_watching(void)
{
    defer_call(SYS_prctl, PR_SET_SYSCALL_USER_DISPATCH, DISPATCH_OFF, 0, 0, 0, 0);
    protect_time(PROT_READ);
    set_timer(0);
    for (int i = 0; i < WATCHED; i++)
        set_action(defer_watched[i], &defer_before[i], NULL);
}

/* The program at the fork point, and its errno. */
static ucontext_t *at_fork_point;
static int error_there;

const ucontext_t *defer_context(int *error)
{
    *error = error_there;
    return at_fork_point;
}

ucontext_t *defer_continuation(void)
{
    return at_fork_point;
}

/* Serves at the fork point; returns in each child, which continues from `context`. */
static void fork_here(ucontext_t *context, int point)
{
    int error = errno;
    stop_watching();
    context->uc_stack = defer_stack_before;
    at_fork_point = context;
    error_there = error;
    files_note();
    serve_there(point);
    files_set_back();
    errno = error;
}

static void on_call(int signal, siginfo_t *info, void *data)
{
    (void)signal;
    ucontext_t *context = data;
    greg_t *registers = context->uc_mcontext.gregs;
    selector = ALLOW;
    if (defer_performs(info, context)) {
        selector = BLOCK;
        return;
    }
    registers[REG_RIP] -= 2; /* `syscall` has two bytes */
    registers[REG_RAX] = info->si_syscall;
    fork_here(context, info->si_syscall);
}

/* Whether the instruction at `code` reads the time stamp counter: rdtsc or rdtscp. */
static int reads_counter(const unsigned char *code)
{
    return code[0] == 0x0f && (code[1] == 0x31 || (code[1] == 0x01 && code[2] == 0xf9));
}

static int reads_time(const siginfo_t *info, const ucontext_t *context)
{
    uintptr_t at = (uintptr_t)info->si_addr;
    if (info->si_signo != SIGSEGV)
        return 0;
    if (info->si_code == SI_KERNEL)
        return reads_counter((const unsigned char *)context->uc_mcontext.gregs[REG_RIP]);
    for (int i = 0; i < time_page_count; i++)
        if (defer_is_within(at, time_pages[i].begin, time_pages[i].end - time_pages[i].begin))
            return 1;
    return 0;
}

/* A child returns to the instruction that was interrupted. */
static void on_other(int signal, siginfo_t *info, void *context)
{
    int point = signal == SIGVTALRM ? FORK_AT_TIMER : FORK_AT_FAULT;
    if (signal == SIGTRAP && info->si_code == SI_KERNEL && blocks_hit(context, 0))
        return;
    selector = ALLOW;
    fork_here(context, reads_time(info, context) ? FORK_AT_CLOCK : point);
}

/* Adds the mapping of a line of /proc/self/maps, if it is the kernel's time page. */
static void note_mapping(const char *line)
{
    char *end;
    if (!strstr(line, "[vvar") || time_page_count == MOST_RANGES)
        return;
    struct range *page = &time_pages[time_page_count++];
    page->begin = strtoul(line, &end, 16);
    page->end = strtoul(end + 1, NULL, 16);
}

static int find_time_pages(void)
{
    char line[512], chunk[1024];
    size_t length = 0;
    int fd = open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
    ssize_t got;
    while (fd >= 0 && (got = read(fd, chunk, sizeof chunk)) > 0) {
        for (ssize_t i = 0; i < got; i++) {
            if (length < sizeof line - 1)
                line[length++] = chunk[i];
            if (chunk[i] != '\n')
                continue;
            line[length] = 0;
            length = 0;
            note_mapping(line);
        }
    }
    if (fd >= 0)
        close(fd);
    return time_page_count > 0;
}

/* Whether the program has blocked a signal of this file before `main`. */
static int blocks_watched(void)
{
    unsigned long mask = 0;
    defer_call(SYS_rt_sigprocmask, SIG_BLOCK, 0, (long)&mask, sizeof mask, 0, 0);
    return (mask & defer_watched_mask()) != 0;
}

static int start_watching(void)
{
    const unsigned long flags = SA_SIGINFO | SA_ONSTACK | 0x04000000 /* SA_RESTORER */;
    struct kernel_action action = {on_other, flags, defer_return, defer_watched_mask()};
    /* Set aside while a handler runs, so that the return from it can set another one. */
    const int disarmed = (int)(1u << 31); /* SS_AUTODISARM */
    stack_t stack = {.ss_sp = signal_stack, .ss_size = sizeof signal_stack, .ss_flags = disarmed};
    long begin = (long)defer_text, length = defer_text_end - defer_text;
    if (blocks_watched() || sigaltstack(&stack, &defer_stack_before) < 0)
        return 0;
    for (int i = 0; i < WATCHED; i++) {
        action.handler = defer_watched[i] == SIGSYS ? on_call : on_other;
        set_action(defer_watched[i], &action, &defer_before[i]);
    }
    protect_time(PROT_NONE);
    set_timer(HALF_A_SECOND);
    if (prctl(PR_SET_SYSCALL_USER_DISPATCH, DISPATCH_ON, begin, length, &selector) == 0) {
        selector = BLOCK;
        return 1;
    }
    stop_watching();
    sigaltstack(&defer_stack_before, NULL);
    return 0;
}

static int *tid_address;

int defer_fork(const char *inputs, int freeze, void (*serve)(int point))
{
    serve_there = serve;
    defer_frozen = freeze;
    return prctl(PR_GET_TID_ADDRESS, &tid_address) == 0 && defer_know_calls(inputs)
           && find_time_pages() && start_watching();
}

pid_t defer_new_child(void)
{
    const long flags = SIGCHLD | 0x00200000 /* CLONE_CHILD_CLEARTID */;
    long robust, length;
    defer_call(SYS_get_robust_list, 0, (long)&robust, (long)&length, 0, 0, 0);
    long child = defer_call(SYS_clone, flags, 0, 0, (long)tid_address, 0, 0);
    if (child == 0)
        defer_call(SYS_set_robust_list, robust, length, 0, 0, 0, 0);
    return (pid_t)child;
}

#else
int defer_fork(const char *inputs, int freeze, void (*serve)(int point))
{
    (void)inputs, (void)freeze, (void)serve;
    return 0;
}

pid_t defer_new_child(void)
{
    return -1;
}

const ucontext_t *defer_context(int *error)
{
    *error = 0;
    return NULL;
}

ucontext_t *defer_continuation(void)
{
    return NULL;
}
#endif
