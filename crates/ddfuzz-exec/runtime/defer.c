/* How it works: Syscall User Dispatch (Linux 5.11) turns each system call of the program into a
 * SIGSYS. The handler performs those of the table below, whose result depends on nothing but the
 * start of the program and whose effects a fork copies. Any other call is the fork point: the
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
 *     library holds at the fork point are given back by it
 *   - files that are open at the fork point share their offset with all children: each child sets
 *     it back (defer_files.c)
 *   - what is in no line of the table is the fork point */
#define _GNU_SOURCE
#include "defer.h"
#include "blocks.h"
#include "defer_files.h"

#if defined(__x86_64__) && defined(__linux__)
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/resource.h>
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
#ifndef SYS_faccessat2
#define SYS_faccessat2 439
#endif
/* CPU time until the fork point, at most. */
#define HALF_A_SECOND 500000

enum { DISPATCH_OFF = 0, DISPATCH_ON = 1, ALLOW = 0, BLOCK = 1 };

struct call {
    long number, arguments[6];
    uintptr_t from; /* address of the instruction after the system call */
    ucontext_t *context;
    const struct line *line; /* of the table */
};

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

static long perform(const struct call *call)
{
    const long *a = call->arguments;
    return defer_call(call->number, a[0], a[1], a[2], a[3], a[4], a[5]);
}

static volatile char selector;
static void (*serve_there)(int point);

/* The signal stack of the handlers. */
static char signal_stack[64 << 10];

struct kernel_action {
    void (*handler)(int, siginfo_t *, void *);
    unsigned long flags;
    void (*restorer)(void);
    unsigned long mask;
};
static stack_t stack_before;

/* The signals of this file, and the program's actions for them. */
static const int watched[] = {SIGSYS, SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGTRAP, SIGVTALRM};
enum { WATCHED = sizeof watched / sizeof *watched };
static struct kernel_action before[WATCHED];

static unsigned long watched_mask(void)
{
    unsigned long mask = 0;
    for (int i = 0; i < WATCHED; i++)
        mask |= 1ul << (watched[i] - 1);
    return mask;
}

/* Mappings of the kernel's time page. */
enum { MOST_RANGES = 4 };
static struct range {
    uintptr_t begin, end;
} time_pages[MOST_RANGES];
static int time_page_count;

/* Functions of the C library: its malloc, and the one by which that asks for randomness. */
static uintptr_t libc_malloc, libc_getrandom;

/* The calls of the table: each returns 0 if the call is the fork point; else it has performed the
 * call and set its result. */
typedef int rule(const struct call *call, long *result);

/* A line of the table. Of calls with a path: the number of its argument, behind which a directory
 * may stand, and the number of the flags' argument, or what holds without flags. */
enum { FOLLOWED = -1, NOT_FOLLOWED = -2 };
struct line {
    long number;
    rule *rule;
    signed char path, flags;
};

static long directory_of(const struct call *call)
{
    return call->line->path ? call->arguments[0] : AT_FDCWD;
}

static int pass(const struct call *call, long *result)
{
    *result = perform(call);
    return 1;
}

static int pass_if(int allowed, const struct call *call, long *result)
{
    return allowed && pass(call, result);
}

static int of_opened(const struct call *call, long *result)
{
    return pass_if(files_is_opened(call->arguments[0]), call, result);
}

static int of_own_memory(const struct call *call, long *result)
{
    long flags = call->arguments[3];
    int of_file = !(flags & MAP_ANONYMOUS);
    /* Files are opened to read only, so that nobody writes by a shared mapping. */
    int own = of_file ? files_is_opened(call->arguments[4]) : (flags & MAP_TYPE) == MAP_PRIVATE;
    return pass_if(own, call, result);
}

static int of_advice(const struct call *call, long *result)
{
    long advice = call->arguments[2];
    int inherited = advice == MADV_DONTNEED || advice == MADV_FREE || advice == MADV_HUGEPAGE
                    || advice == MADV_NOHUGEPAGE || advice == MADV_WILLNEED;
    return pass_if(inherited, call, result);
}

/* Opens a file to read, if no run can change it. */
static int of_open(const struct call *call, long *result)
{
    const long *a = call->arguments;
    return files_open(directory_of(call), a[call->line->path], a[call->line->flags], result);
}

static int of_close(const struct call *call, long *result)
{
    return pass_if(files_forget(call->arguments[0]), call, result);
}

static int of_facts(const struct call *call, long *result)
{
    long fd = call->arguments[0];
    return pass_if(files_is_opened(fd) || files_is_plain_output(fd), call, result);
}

/* A question about what a path names, or about an open file where the path is empty. */
static int of_path(const struct call *call, long *result)
{
    const struct line *line = call->line;
    int flags = line->flags == NOT_FOLLOWED ? AT_SYMLINK_NOFOLLOW : 0;
    if (line->flags >= 0)
        flags = (int)call->arguments[line->flags] & (AT_SYMLINK_NOFOLLOW | AT_EMPTY_PATH);
    if (flags & AT_EMPTY_PATH)
        return of_facts(call, result);
    long path = call->arguments[line->path];
    return pass_if(files_is_constant(directory_of(call), path, flags), call, result);
}

/* The program's own file is that of each run. */
static int of_link(const struct call *call, long *result)
{
    const char *path = (const char *)call->arguments[call->line->path];
    return strcmp(path, "/proc/self/exe") == 0 ? pass(call, result) : of_path(call, result);
}

/* Whether a file is a terminal, and how wide. What is none is none in each run. */
static int of_ioctl(const struct call *call, long *result)
{
    long fd = call->arguments[0], request = call->arguments[1];
    if (request != TCGETS && request != TIOCGWINSZ)
        return 0;
    if (files_is_plain_output(fd))
        return pass(call, result);
    *result = perform(call);
    return *result == -ENOTTY && (fd <= STDERR_FILENO || files_is_opened(fd));
}

static int of_fcntl(const struct call *call, long *result)
{
    long fd = call->arguments[0], command = call->arguments[1];
    int asks = command == F_GETFD || command == F_GETFL;
    if (files_is_opened(fd))
        return pass_if(asks || command == F_SETFD, call, result);
    return pass_if(fd <= STDERR_FILENO && command == F_GETFD, call, result);
}

/* The program's own action for a signal of this file takes effect at the fork point. */
static int of_action(const struct call *call, long *result)
{
    const long *a = call->arguments;
    for (int i = 0; i < WATCHED; i++) {
        if (a[0] != watched[i])
            continue;
        struct kernel_action last = before[i];
        if (a[1])
            memcpy(&before[i], (const void *)a[1], sizeof last);
        if (a[2])
            memcpy((void *)a[2], &last, sizeof last);
        *result = 0;
        return 1;
    }
    return pass(call, result);
}

/* The mask is that of the interrupted program, which the return from the handler restores. */
static int of_mask(const struct call *call, long *result)
{
    const long *a = call->arguments;
    unsigned long mask, set = 0;
    if (a[3] != sizeof mask)
        return 0;
    memcpy(&mask, &call->context->uc_sigmask, sizeof mask);
    if (a[1])
        memcpy(&set, (const void *)a[1], sizeof set);
    if (a[1] && a[0] != SIG_UNBLOCK && (set & watched_mask()))
        return 0;
    if (a[2])
        memcpy((void *)a[2], &mask, sizeof mask);
    *result = 0;
    if (!a[1])
        return 1;
    switch (a[0]) {
    case SIG_BLOCK: mask |= set; break;
    case SIG_UNBLOCK: mask &= ~set; break;
    case SIG_SETMASK: mask = set; break;
    default: *result = -EINVAL; return 1;
    }
    memcpy(&call->context->uc_sigmask, &mask, sizeof mask);
    return 1;
}

/* The program's signal stack takes effect at the fork point. */
static int of_stack(const struct call *call, long *result)
{
    const long *a = call->arguments;
    stack_t last = stack_before;
    if (a[0]) {
        const stack_t *asked = (const stack_t *)a[0];
        if (asked->ss_flags != SS_DISABLE && (asked->ss_flags || asked->ss_size < (size_t)MINSIGSTKSZ))
            return 0;
        stack_before = *asked;
    }
    if (a[1])
        *(stack_t *)a[1] = last;
    *result = 0;
    return 1;
}

static int of_limits(const struct call *call, long *result)
{
    return pass_if(call->arguments[0] == 0 && call->arguments[2] == 0, call, result);
}

static int of_prctl(const struct call *call, long *result)
{
    long option = call->arguments[0];
    return pass_if(option == PR_SET_NAME || option == PR_GET_NAME, call, result);
}

static int of_futex(const struct call *call, long *result)
{
    long operation = call->arguments[1] & FUTEX_CMD_MASK;
    return pass_if(operation == FUTEX_WAKE, call, result);
}

static int is_within(uintptr_t address, uintptr_t begin, uintptr_t length)
{
    return begin && address - begin < length;
}

/* Whether runs share the random numbers, the times and the process id that the program reads before
 * its first use of the input. */
static int frozen;

static int if_frozen(const struct call *call, long *result)
{
    return pass_if(frozen, call, result);
}

/* The random number by which malloc of the C library recognizes its own marks: no program sees it.
 * malloc and what it calls are one object file; it may ask by getrandom, which has no frame. */
static int of_random(const struct call *call, long *result)
{
    if (frozen)
        return pass(call, result);
    const uintptr_t *stack = (const uintptr_t *)call->context->uc_mcontext.gregs[REG_RSP];
    uintptr_t from = is_within(call->from, libc_getrandom, 64) ? *stack : call->from;
    int by_malloc = is_within(from, libc_malloc - (16 << 10), 32 << 10);
    return pass_if(by_malloc && call->arguments[2] == GRND_NONBLOCK, call, result);
}

/* Most calls have no path. */
#pragma GCC diagnostic ignored "-Wmissing-field-initializers"
static const struct line table[] = {
    /* Memory of this process, which a fork copies. */
    {SYS_brk, pass},
    {SYS_mmap, of_own_memory},
    {SYS_munmap, pass},
    {SYS_mprotect, pass},
    {SYS_mremap, pass},
    {SYS_madvise, of_advice},
    /* Files that no run can change: locales, tables, configuration, scripts. */
    {SYS_open, of_open, 0, 1},
    {SYS_openat, of_open, 1, 2},
    {SYS_read, of_opened},
    {SYS_pread64, of_opened},
    {SYS_lseek, of_opened},
    {SYS_getdents64, of_opened},
    {SYS_close, of_close},
    {SYS_stat, of_path, 0, FOLLOWED},
    {SYS_lstat, of_path, 0, NOT_FOLLOWED},
    {SYS_fstat, of_facts},
    {SYS_newfstatat, of_path, 1, 3},
    {SYS_statx, of_path, 1, 2},
    {SYS_access, of_path, 0, FOLLOWED},
    {SYS_faccessat, of_path, 1, FOLLOWED},
    {SYS_faccessat2, of_path, 1, 3},
    {SYS_readlink, of_link, 0, NOT_FOLLOWED},
    {SYS_readlinkat, of_link, 1, NOT_FOLLOWED},
    {SYS_fcntl, of_fcntl},
    {SYS_ioctl, of_ioctl},
    /* Attributes of this process that a fork copies. */
    {SYS_rt_sigaction, of_action},
    {SYS_rt_sigprocmask, of_mask},
    {SYS_sigaltstack, of_stack},
    {SYS_umask, pass},
    {SYS_prctl, of_prctl},
    /* Answers that are the same for each process of this user on this machine. */
    {SYS_getuid, pass},
    {SYS_geteuid, pass},
    {SYS_getgid, pass},
    {SYS_getegid, pass},
    {SYS_getresuid, pass},
    {SYS_getresgid, pass},
    {SYS_getgroups, pass},
    {SYS_getcwd, pass},
    {SYS_uname, pass},
    {SYS_sched_getaffinity, pass},
    {SYS_prlimit64, of_limits},
    {SYS_getrlimit, pass},
    /* Wakes nobody: there is one thread. */
    {SYS_futex, of_futex},
    {SYS_getrandom, of_random},
    /* What differs between runs, and may be shared where the user says so. */
    {SYS_clock_gettime, if_frozen},
    {SYS_clock_getres, if_frozen},
    {SYS_gettimeofday, if_frozen},
    {SYS_time, if_frozen},
    {SYS_getpid, if_frozen},
    {SYS_gettid, if_frozen},
    {SYS_sysinfo, if_frozen},
};

static int handle(struct call *call, long *result)
{
    for (call->line = table; call->line < table + sizeof table / sizeof *table; call->line++)
        if (call->line->number == call->number)
            return call->line->rule(call, result);
    return 0;
}

static void protect_time(int protection)
{
    if (frozen)
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
        set_action(watched[i], &before[i], NULL);
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
    context->uc_stack = stack_before;
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
    struct call call = {
        info->si_syscall,
        {registers[REG_RDI], registers[REG_RSI], registers[REG_RDX], registers[REG_R10],
         registers[REG_R8], registers[REG_R9]},
        (uintptr_t)registers[REG_RIP],
        context,
        NULL,
    };
    long result;
    selector = ALLOW;
    if (handle(&call, &result)) {
        registers[REG_RAX] = result;
        selector = BLOCK;
        return;
    }
    registers[REG_RIP] -= 2; /* `syscall` has two bytes */
    registers[REG_RAX] = call.number;
    fork_here(context, (int)call.number);
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
        if (is_within(at, time_pages[i].begin, time_pages[i].end - time_pages[i].begin))
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
    return (mask & watched_mask()) != 0;
}

static int start_watching(void)
{
    const unsigned long flags = SA_SIGINFO | SA_ONSTACK | 0x04000000 /* SA_RESTORER */;
    struct kernel_action action = {on_other, flags, defer_return, watched_mask()};
    /* Set aside while a handler runs, so that the return from it can set another one. */
    const int disarmed = (int)(1u << 31); /* SS_AUTODISARM */
    stack_t stack = {.ss_sp = signal_stack, .ss_size = sizeof signal_stack, .ss_flags = disarmed};
    long begin = (long)defer_text, length = defer_text_end - defer_text;
    if (blocks_watched() || sigaltstack(&stack, &stack_before) < 0)
        return 0;
    for (int i = 0; i < WATCHED; i++) {
        action.handler = watched[i] == SIGSYS ? on_call : on_other;
        set_action(watched[i], &action, &before[i]);
    }
    protect_time(PROT_NONE);
    set_timer(HALF_A_SECOND);
    if (prctl(PR_SET_SYSCALL_USER_DISPATCH, DISPATCH_ON, begin, length, &selector) == 0) {
        selector = BLOCK;
        return 1;
    }
    stop_watching();
    sigaltstack(&stack_before, NULL);
    return 0;
}

static int *tid_address;

int defer_fork(const char *inputs, int freeze, void (*serve)(int point))
{
    frozen = freeze;
    libc_malloc = (uintptr_t)dlsym(RTLD_DEFAULT, "__libc_malloc");
    libc_getrandom = (uintptr_t)dlsym(RTLD_DEFAULT, "getrandom");
    serve_there = serve;
    return prctl(PR_GET_TID_ADDRESS, &tid_address) == 0 && files_begin(inputs, freeze)
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
