#define _GNU_SOURCE
#include "serve.h"
#include "sweep.h"
#include "terminal.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <unistd.h>

struct page *serve_page;

int read_whole(int fd, void *buffer, size_t length)
{
    char *at = buffer;
    while (length > 0) {
        ssize_t got = read(fd, at, length);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            return 0;
        at += got;
        length -= (size_t)got;
    }
    return 1;
}

static int write_whole(int fd, const void *buffer, size_t length)
{
    const char *at = buffer;
    while (length > 0) {
        ssize_t put = write(fd, at, length);
        if (put < 0 && errno == EINTR)
            continue;
        if (put <= 0)
            return 0;
        at += put;
        length -= (size_t)put;
    }
    return 1;
}

int serve_is_null(const struct stat *facts)
{
    return S_ISCHR(facts->st_mode) && facts->st_rdev == makedev(1, 3);
}

/* Clears the flags of stdout and stderr that runs of an earlier server with the same open files may
 * have set. ddfuzz opens /dev/null and pipes without flags, and regular files for appending. */
static void clear_output_flags(void)
{
    for (int fd = STDOUT_FILENO; fd <= STDERR_FILENO; fd++) {
        struct stat facts;
        int flags = fcntl(fd, F_GETFL);
        if (flags < 0 || fstat(fd, &facts) < 0)
            continue;
        if (serve_is_null(&facts) || S_ISFIFO(facts.st_mode))
            fcntl(fd, F_SETFL, flags & O_ACCMODE);
        else if (S_ISREG(facts.st_mode))
            fcntl(fd, F_SETFL, flags & (O_ACCMODE | O_APPEND));
    }
}

void serve_map_page(void)
{
    clear_output_flags();
    void *page = mmap(NULL, sizeof(struct page), PROT_READ | PROT_WRITE, MAP_SHARED, FD_PAGE, 0);
    if (page == MAP_FAILED) {
        serve_hello(TROUBLE_SETUP, errno);
        _exit(0);
    }
    serve_page = page;
}

void serve_unmap_page(void)
{
    munmap(serve_page, sizeof(struct page));
}

/* Flags that the open files of stdout and stderr, which all runs share, had when the server began
 * to serve; -1 before that. */
static int output_flags[2] = {-1, -1};

static void note_output_flags(void)
{
    for (int at = 0; at < 2; at++)
        output_flags[at] = fcntl(STDOUT_FILENO + at, F_GETFL);
}

int serve_output_flags(int fd)
{
    return output_flags[fd - STDOUT_FILENO];
}

static void reset_output_flags(void)
{
    for (int at = 0; at < 2; at++)
        if (output_flags[at] >= 0)
            fcntl(STDOUT_FILENO + at, F_SETFL, output_flags[at]);
}

void serve_hello(enum trouble trouble, int detail)
{
    note_output_flags();
    struct hello hello = {DDFUZZ_MAGIC, DDFUZZ_VERSION, getpid(), trouble, detail, 0};
    if (!write_whole(FD_REPLY, &hello, sizeof hello))
        _exit(0); /* ddfuzz is gone, or the program closed an inherited descriptor */
}

int serve_next(struct request *request)
{
    return read_whole(FD_REQUEST, request, sizeof *request);
}

int serve_try_reply(uint64_t seq, int status, int exec_errno, uint64_t cpu_us)
{
    struct reply reply = {seq, status, exec_errno, cpu_us};
    return write_whole(FD_REPLY, &reply, sizeof reply);
}

void serve_reply(uint64_t seq, int status, int exec_errno, uint64_t cpu_us)
{
    if (!serve_try_reply(seq, status, exec_errno, cpu_us))
        _exit(0); /* ddfuzz is gone */
}

static uint64_t micros(struct timeval time)
{
    return (uint64_t)time.tv_sec * 1000000u + (uint64_t)time.tv_usec;
}

uint64_t cpu_micros(const struct rusage *usage)
{
    return micros(usage->ru_utime) + micros(usage->ru_stime);
}

/* A child that asked to be traced (PTRACE_TRACEME) stops at each of its signals. It is continued
 * with the signal, as if it had not asked. */
static void let_go(pid_t child, int signal)
{
    siginfo_t info;
    info.si_code = 0;
    ptrace(PTRACE_GETSIGINFO, child, NULL, &info);
    if (signal == SIGTRAP && info.si_code == SI_USER)
        signal = 0; /* the stop at execve, which has no signal otherwise */
    ptrace(PTRACE_DETACH, child, NULL, (long)signal);
}

/* Waits for the end of a child. Unless `reaped` is NULL, sets it to whether the child had reaped a
 * child of its own. */
static int await_end(pid_t child, struct rusage *usage, int *reaped)
{
    int status = 0;
    for (;;) {
        if (reaped)
            *reaped = sweep_had_children(child);
        if (wait4(child, &status, 0, usage) < 0) {
            if (errno != EINTR)
                _exit(0); /* its status is lost; ddfuzz starts a new server */
        } else if (WIFSTOPPED(status)) {
            let_go(child, WSTOPSIG(status));
        } else {
            return status;
        }
    }
}

int serve_await_end(pid_t child, struct rusage *usage)
{
    return await_end(child, usage, NULL);
}

void serve_sweep(int status)
{
    serve_page->forked = WIFEXITED(status) ? sweep_descendants_later() : sweep_descendants();
}

void serve_finish(const struct request *request, pid_t child)
{
    struct rusage usage;
    int reaped = 0, status = await_end(child, &usage, &reaped);
    serve_sweep(status);
    if (reaped)
        serve_page->forked = 1;
    serve_reply(request->seq, status, serve_page->exec_errno, cpu_micros(&usage));
}

void serve_await_tracer(const struct request *request)
{
    char go;
    serve_reply(request->seq, getpid(), 0, CPU_READY);
    if (!read_whole(FD_REQUEST, &go, 1))
        _exit(0);
}

void die_with(pid_t parent)
{
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent)
        _exit(0); /* the parent died before the call above */
}

void serve_become_child(void)
{
    if (!terminal_is_there()) {
        dup2(FD_INPUT, STDIN_FILENO);
        lseek(STDIN_FILENO, 0, SEEK_SET);
        fcntl(STDIN_FILENO, F_SETFL, 0); /* a run before may have set flags: all share the file */
        reset_output_flags();
    } else if (terminal_take() != 0) {
        serve_page->exec_errno = EAGAIN; /* the next server has another terminal */
        _exit(127);
    }
#ifdef SYS_close_range
    if (syscall(SYS_close_range, FD_FIRST, FD_LAST, 0) == 0)
        return;
#endif
    for (int fd = FD_FIRST; fd <= FD_LAST; fd++)
        close(fd);
}
