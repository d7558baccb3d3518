#define _GNU_SOURCE
#include "serve.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
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

void write_whole(int fd, const void *buffer, size_t length)
{
    const char *at = buffer;
    while (length > 0) {
        ssize_t put = write(fd, at, length);
        if (put < 0 && errno == EINTR)
            continue;
        if (put <= 0)
            _exit(0); /* ddfuzz is gone */
        at += put;
        length -= (size_t)put;
    }
}

void serve_map_page(int inherit)
{
    void *page = mmap(NULL, sizeof(struct page), PROT_READ | PROT_WRITE, MAP_SHARED, FD_PAGE, 0);
    if (page == MAP_FAILED) {
        serve_hello(TROUBLE_SETUP, errno);
        _exit(0);
    }
    /* A child that does not inherit the page cannot scribble on it, at no cost for a run. */
    if (!inherit)
        madvise(page, sizeof(struct page), MADV_DONTFORK);
    serve_page = page;
}

void serve_hello(enum trouble trouble, int detail)
{
    struct hello hello = {DDFUZZ_MAGIC, DDFUZZ_VERSION, getpid(), trouble, detail, 0};
    write_whole(FD_REPLY, &hello, sizeof hello);
}

int serve_next(struct request *request)
{
    return read_whole(FD_REQUEST, request, sizeof *request);
}

void serve_reply(uint64_t seq, int status, int exec_errno, uint64_t cpu_us)
{
    struct reply reply = {seq, status, exec_errno, cpu_us};
    write_whole(FD_REPLY, &reply, sizeof reply);
}

static uint64_t micros(struct timeval time)
{
    return (uint64_t)time.tv_sec * 1000000u + (uint64_t)time.tv_usec;
}

void serve_finish(const struct request *request, pid_t child)
{
    int status = 0;
    struct rusage usage;
    while (wait4(child, &status, 0, &usage) < 0) {
        if (errno != EINTR)
            _exit(0);
    }
    serve_page->pid = 0;
    sweep_descendants();
    serve_reply(request->seq, status, serve_page->exec_errno, micros(usage.ru_utime) + micros(usage.ru_stime));
}

void die_with(pid_t parent)
{
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent)
        _exit(0); /* it died before the call above could notice */
}

void serve_become_child(pid_t parent)
{
    die_with(parent);
    setpgid(0, 0);
    dup2(FD_INPUT, STDIN_FILENO);
    lseek(STDIN_FILENO, 0, SEEK_SET);
#ifdef SYS_close_range
    if (syscall(SYS_close_range, FD_FIRST, FD_LAST, 0) == 0)
        return;
#endif
    for (int fd = FD_FIRST; fd <= FD_LAST; fd++)
        close(fd);
}

/* Signals all direct children; returns how many there were. */
static int signal_children(int number)
{
    char buffer[4096];
    int count = 0, fd = open("/proc/thread-self/children", O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return 0;
    ssize_t got;
    pid_t pid = 0;
    while ((got = read(fd, buffer, sizeof buffer)) > 0) {
        for (ssize_t i = 0; i < got; i++) {
            if (buffer[i] >= '0' && buffer[i] <= '9') {
                pid = pid * 10 + (buffer[i] - '0');
            } else if (pid > 0) {
                kill(pid, number);
                count++;
                pid = 0;
            }
        }
    }
    close(fd);
    return count;
}

void sweep_descendants(void)
{
    for (;;) {
        pid_t pid = waitpid(-1, NULL, WNOHANG);
        if (pid < 0)
            return; /* no children left: the usual case costs this one call */
        if (pid > 0)
            continue;
        /* Stopped first, killed second: something that forks faster than it can be killed
         * would otherwise stay ahead. Orphans of the killed become children of ours. */
        int seen = 0, now;
        for (int pass = 0; pass < 64 && (now = signal_children(SIGSTOP)) > seen; pass++)
            seen = now;
        signal_children(SIGKILL);
        poll(NULL, 0, 1);
    }
}
