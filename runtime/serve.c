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

static int signal_tree(const char *children_file, int number, int depth);

static int signal_one(pid_t pid, int number, int depth)
{
    char path[64], digits[16];
    const char *head = "/proc/", *middle = "/task/", *tail = "/children";
    char *at = path;
    int length = 0;
    kill(pid, number);
    if (depth == 0)
        return 1;
    for (pid_t rest = pid; rest > 0; rest /= 10)
        digits[length++] = (char)('0' + rest % 10);
    while (*head)
        *at++ = *head++;
    for (int i = length; i > 0; i--)
        *at++ = digits[i - 1];
    while (*middle)
        *at++ = *middle++;
    for (int i = length; i > 0; i--)
        *at++ = digits[i - 1];
    while (*tail)
        *at++ = *tail++;
    *at = 0;
    return 1 + signal_tree(path, number, depth - 1);
}

/* Signals all processes below; returns how many there were. Printing a path by hand, because
 * nothing of libc that might allocate may be called here. */
static int signal_tree(const char *children_file, int number, int depth)
{
    char buffer[512];
    int count = 0, fd = open(children_file, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return 0;
    ssize_t got;
    pid_t pid = 0;
    while ((got = read(fd, buffer, sizeof buffer)) > 0) {
        for (ssize_t i = 0; i < got; i++) {
            if (buffer[i] >= '0' && buffer[i] <= '9') {
                pid = pid * 10 + (buffer[i] - '0');
            } else if (pid > 0) {
                count += signal_one(pid, number, depth);
                pid = 0;
            }
        }
    }
    close(fd);
    return count;
}

enum { DEEPEST = 64, MOST_PASSES = 1000 };

void sweep_descendants(void)
{
    static const char mine[] = "/proc/thread-self/children";
    for (;;) {
        pid_t pid = waitpid(-1, NULL, WNOHANG);
        if (pid < 0)
            return; /* no children left: the usual case costs this one call */
        if (pid > 0)
            continue;
        /* All are stopped before any is killed. The stopped keep their places in the limit on
         * processes, so a fork bomb runs out of room; each one killed while others still run
         * would give them a place back. */
        int before = -1, now = signal_tree(mine, SIGSTOP, DEEPEST);
        for (int pass = 0; pass < MOST_PASSES && now != before; pass++) {
            before = now;
            now = signal_tree(mine, SIGSTOP, DEEPEST);
        }
        signal_tree(mine, SIGKILL, DEEPEST);
        while (waitpid(-1, NULL, WNOHANG) > 0)
            continue;
        poll(NULL, 0, 1);
    }
}
