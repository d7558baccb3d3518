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

void serve_map_page(void)
{
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

uint64_t cpu_micros(const struct rusage *usage)
{
    return micros(usage->ru_utime) + micros(usage->ru_stime);
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
    serve_reply(request->seq, status, serve_page->exec_errno, cpu_micros(&usage));
}

void die_with(pid_t parent)
{
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent)
        _exit(0); /* it died before the call above could notice */
}

void serve_become_child(void)
{
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

static char *append(char *at, const char *text)
{
    while (*text)
        *at++ = *text++;
    return at;
}

static char *append_number(char *at, pid_t number)
{
    char digits[16];
    int length = 0;
    for (; number > 0; number /= 10)
        digits[length++] = (char)('0' + number % 10);
    while (length > 0)
        *at++ = digits[--length];
    return at;
}

static int signal_one(pid_t pid, int number, int depth)
{
    char path[64];
    kill(pid, number);
    if (depth == 0)
        return 1;
    /* By hand: printf may allocate. */
    char *at = append_number(append(path, "/proc/"), pid);
    *append(append_number(append(at, "/task/"), pid), "/children") = 0;
    return 1 + signal_tree(path, number, depth - 1);
}

/* Signals all processes below; returns how many there were. */
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

static const char our_children[] = "/proc/thread-self/children";

/* All are stopped before any is killed. The stopped keep their places in the limit on processes,
 * so a fork bomb runs out of room; each one killed while others still run would give them a
 * place back. */
static void stop_and_kill(void)
{
    int before = -1, now = signal_tree(our_children, SIGSTOP, DEEPEST);
    for (int pass = 0; pass < MOST_PASSES && now != before; pass++) {
        before = now;
        now = signal_tree(our_children, SIGSTOP, DEEPEST);
    }
    signal_tree(our_children, SIGKILL, DEEPEST);
}

void sweep_descendants(void)
{
    for (;;) {
        pid_t pid = waitpid(-1, NULL, WNOHANG);
        if (pid < 0)
            return; /* no children left: the usual case costs this one call */
        if (pid > 0)
            continue;
        stop_and_kill();
        poll(NULL, 0, 1);
    }
}
