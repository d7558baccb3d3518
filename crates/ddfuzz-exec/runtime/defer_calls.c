/* The calls of a program before its fork point (defer.c): which of them are performed there, once for
 * all runs, and which one is the fork point.
 *
 * Invariants:
 *   - the result of a call that is performed depends on nothing but the start of the program, and a
 *     fork copies its effects
 *   - what is in no line of the table is the fork point */
#define _GNU_SOURCE
#include "defer_calls.h"

#if defined(__x86_64__) && defined(__linux__)
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "defer.h"
#include "defer_files.h"
#include "protocol.h"

/* A call of the program, as its signal handler sees it. */
struct call {
    long number, arguments[6];
    uintptr_t from; /* address of the instruction after the system call */
    ucontext_t *context;
    const struct line *line; /* of the table */
};

const int defer_watched[] = {SIGSYS, SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGTRAP, SIGVTALRM};
struct kernel_action defer_before[WATCHED];
stack_t defer_stack_before;

unsigned long defer_watched_mask(void)
{
    unsigned long mask = 0;
    for (int i = 0; i < WATCHED; i++)
        mask |= 1ul << (defer_watched[i] - 1);
    return mask;
}

/* Functions of the C library: its malloc, and the one by which that asks for randomness. */
static uintptr_t libc_malloc, libc_getrandom;

static long perform(const struct call *call)
{
    const long *a = call->arguments;
    return defer_call(call->number, a[0], a[1], a[2], a[3], a[4], a[5]);
}

/* The calls of the table: each returns 0 if the call is the fork point; else it has performed the
 * call and set its result. */
typedef int rule(const struct call *call, long *result);

/* A line of the table. For calls with a path, `path` is the number of the path's argument; if that
 * is not the first one, the first is the directory. `flags` is the number of the flags' argument;
 * for calls without flags, it says whether links are followed. */
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
    /* A shared mapping of a file cannot be written to, since files are opened only to be read. A
     * mapping that grows downwards during a run could not be put back. */
    int own = of_file ? files_is_opened(call->arguments[4]) : (flags & MAP_TYPE) == MAP_PRIVATE;
    return pass_if(own && !(flags & MAP_GROWSDOWN), call, result);
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

/* Whether a child's stdin is a terminal, at which its input is typed. */
static int has_terminal(void)
{
    return defer_call(SYS_fcntl, FD_TERMINAL, F_GETFD, 0, 0, 0, 0) >= 0;
}

/* Setting the offset of a file, or asking for that of a standard descriptor. Each run's stdin stands
 * at its beginning. */
static int of_offset(const struct call *call, long *result)
{
    const long *a = call->arguments;
    if (files_is_opened(a[0]))
        return pass(call, result);
    if (a[1] != 0 || a[2] != SEEK_CUR)
        return 0;
    if (a[0] != STDIN_FILENO)
        return pass_if(files_is_null_output(a[0]), call, result);
    *result = 0;
    return !has_terminal() && defer_call(SYS_lseek, FD_INPUT, 0, SEEK_CUR, 0, 0, 0) >= 0;
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

/* Reading a link. /proc/self/exe names the same file in each run. */
static int of_link(const struct call *call, long *result)
{
    const char *path = (const char *)call->arguments[call->line->path];
    return strcmp(path, "/proc/self/exe") == 0 ? pass(call, result) : of_path(call, result);
}

/* The questions whether a file is a terminal, and how wide. The answer that it is none is the same
 * in each run. A child has another stdin than this process: the file of an input, which is no
 * terminal, whatever it contains. */
static int of_ioctl(const struct call *call, long *result)
{
    long fd = call->arguments[0], request = call->arguments[1];
    if (request != TCGETS && request != TIOCGWINSZ)
        return 0;
    if (files_is_plain_output(fd))
        return pass(call, result);
    if (fd == STDIN_FILENO && !files_is_opened(fd)) {
        if (has_terminal())
            return 0;
        *result = defer_call(SYS_ioctl, FD_INPUT, request, call->arguments[2], 0, 0, 0);
        return *result == -ENOTTY;
    }
    *result = perform(call);
    return *result == -ENOTTY && (fd <= STDERR_FILENO || files_is_opened(fd));
}

/* A child's stdin is the file of an input, without the flags that a run can set. Of an output that
 * leads to /dev/null all runs share the flags, which have no effect there. */
static int of_fcntl(const struct call *call, long *result)
{
    const long settable = O_APPEND | O_NONBLOCK | O_ASYNC | O_DIRECT | O_NOATIME;
    long fd = call->arguments[0], command = call->arguments[1];
    int asks = command == F_GETFD || command == F_GETFL;
    if (files_is_opened(fd))
        return pass_if(asks || command == F_SETFD, call, result);
    if (fd == STDIN_FILENO && command == F_GETFL && !has_terminal()) {
        *result = defer_call(SYS_fcntl, FD_INPUT, F_GETFL, 0, 0, 0, 0) & ~settable;
        return 1;
    }
    if (command == F_GETFL || command == F_SETFL)
        return pass_if(files_is_null_output(fd), call, result);
    if (command == F_SETFD) /* a run begins with such descriptors */
        return pass_if(fd <= STDERR_FILENO && call->arguments[2] == 0, call, result);
    return pass_if(fd <= STDERR_FILENO && command == F_GETFD, call, result);
}

/* The program's own action for a signal of this file takes effect at the fork point. */
static int of_action(const struct call *call, long *result)
{
    const long *a = call->arguments;
    for (int i = 0; i < WATCHED; i++) {
        if (a[0] != defer_watched[i])
            continue;
        struct kernel_action last = defer_before[i];
        if (a[1])
            memcpy(&defer_before[i], (const void *)a[1], sizeof last);
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
    if (a[1] && a[0] != SIG_UNBLOCK && (set & defer_watched_mask()))
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
    stack_t last = defer_stack_before;
    if (a[0]) {
        const stack_t *asked = (const stack_t *)a[0];
        if (asked->ss_flags != SS_DISABLE && (asked->ss_flags || asked->ss_size < (size_t)MINSIGSTKSZ))
            return 0;
        defer_stack_before = *asked;
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

int defer_frozen;

static int if_frozen(const struct call *call, long *result)
{
    return pass_if(defer_frozen, call, result);
}

/* The clocks of CPU time are those of another process after the fork point, where they would go
 * backwards. */
static int of_clock(const struct call *call, long *result)
{
    long clock = (int)call->arguments[0];
    int is_of_cpu = clock < 0 || clock == CLOCK_PROCESS_CPUTIME_ID || clock == CLOCK_THREAD_CPUTIME_ID;
    return pass_if(defer_frozen && !is_of_cpu, call, result);
}

/* The random number by which malloc of the C library recognizes its own marks: no program sees it.
 * malloc and what it calls are one object file; it may ask by getrandom, which has no frame. */
static int of_random(const struct call *call, long *result)
{
    if (defer_frozen)
        return pass(call, result);
    const uintptr_t *stack = (const uintptr_t *)call->context->uc_mcontext.gregs[REG_RSP];
    uintptr_t from = defer_is_within(call->from, libc_getrandom, 64) ? *stack : call->from;
    int by_malloc = defer_is_within(from, libc_malloc - (16 << 10), 32 << 10);
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
    {SYS_lseek, of_offset},
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
    {SYS_clock_gettime, of_clock},
    {SYS_clock_getres, if_frozen},
    {SYS_gettimeofday, if_frozen},
    {SYS_time, if_frozen},
    {SYS_getpid, if_frozen},
    {SYS_gettid, if_frozen},
    {SYS_sysinfo, if_frozen},
};

int defer_performs(const siginfo_t *info, ucontext_t *context)
{
    greg_t *registers = context->uc_mcontext.gregs;
    struct call call = {
        info->si_syscall,
        {registers[REG_RDI], registers[REG_RSI], registers[REG_RDX], registers[REG_R10],
         registers[REG_R8], registers[REG_R9]},
        (uintptr_t)registers[REG_RIP],
        context,
        NULL,
    };
    const struct line *end = table + sizeof table / sizeof *table;
    long result;
    for (call.line = table; call.line < end && call.line->number != call.number; call.line++)
        ;
    if (call.line == end || !call.line->rule(&call, &result))
        return 0;
    registers[REG_RAX] = result;
    return 1;
}

int defer_know_calls(const char *inputs)
{
    libc_malloc = (uintptr_t)dlsym(RTLD_DEFAULT, "__libc_malloc");
    libc_getrandom = (uintptr_t)dlsym(RTLD_DEFAULT, "getrandom");
    return files_begin(inputs);
}
#endif
