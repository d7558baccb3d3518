/* The runtime that is preloaded into an unmodified program. It takes the place of
 * __libc_start_main, lets libc start the program as always (so all constructors run), and
 * stands where `main` would be called:
 *
 *   fork    each request forks a child that goes on into the program's own `main`
 *   entry   each request forks a child that calls the entry function on the input
 *   loop    one child calls the entry function again and again, until it dies
 *   once    calls the entry function on stdin, once, without serving (to be traced) */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "serve.h"

typedef int (*main_function)(int, char **, char **);
typedef int (*entry_function)(const uint8_t *, size_t);
typedef int (*start_function)(main_function, int, char **, void (*)(void), void (*)(void),
                              void (*)(void), void *);

/* A persistent child is replaced after so many runs, so that what it leaks stays bounded. */
enum { RUNS_PER_CHILD = 20000 };

static main_function program_main;

static int find_base(struct dl_phdr_info *info, size_t size, void *base)
{
    (void)size;
    *(uintptr_t *)base = info->dlpi_addr;
    return 1; /* the program itself comes first */
}

static entry_function entry_from(const char *offset)
{
    uintptr_t base = 0;
    dl_iterate_phdr(find_base, &base);
    return (entry_function)(base + strtoull(offset, NULL, 16));
}

static int has_threads(void)
{
    char buffer[4096];
    int fd = open("/proc/self/status", O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return 0;
    ssize_t got = read(fd, buffer, sizeof buffer - 1);
    close(fd);
    if (got <= 0)
        return 0;
    buffer[got] = 0;
    const char *line = strstr(buffer, "\nThreads:");
    return line && strtol(line + 9, NULL, 10) > 1;
}

/* The target and its children must not become servers, and must not see our variables. */
static void forget_environment(void)
{
    const char *own = getenv("DDFUZZ_PRELOAD");
    if (own)
        setenv("LD_PRELOAD", own, 1);
    else
        unsetenv("LD_PRELOAD");
    if (getenv("DDFUZZ_BIND_NOW"))
        unsetenv("LD_BIND_NOW");
    unsetenv("DDFUZZ_PRELOAD");
    unsetenv("DDFUZZ_BIND_NOW");
    unsetenv("DDFUZZ_MODE");
    unsetenv("DDFUZZ_ENTRY");
}

/* Calls the entry function on a heap copy of exactly the input's size, so that reading beyond
 * its end is as visible as it can be. */
static int call_entry(entry_function entry, int fd, size_t length)
{
    uint8_t *input = malloc(length ? length : 1);
    size_t at = 0;
    if (!input)
        _exit(0);
    while (at < length) {
        ssize_t got = pread(fd, input + at, length - at, (off_t)at);
        if (got <= 0)
            break;
        at += (size_t)got;
    }
    int result = entry(input, at);
    free(input);
    return result;
}

static int run_once(entry_function entry)
{
    struct stat facts;
    if (fstat(STDIN_FILENO, &facts) < 0)
        return 127;
    return call_entry(entry, STDIN_FILENO, (size_t)facts.st_size);
}

/* One child, many runs. It answers by itself as long as it lives. */
static void loop_in_child(entry_function entry, pid_t parent)
{
    struct request request;
    die_with(parent);
    setpgid(0, 0);
    for (int runs = 0; runs < RUNS_PER_CHILD; runs++) {
        if (!serve_next(&request))
            _exit(0);
        serve_page->started = request.seq;
        int result = call_entry(entry, FD_INPUT, request.length);
        serve_page->ended = request.seq;
        serve_reply(request.seq, (result & 0xff) << 8, 0, 0);
    }
    _exit(0);
}

static int ddfuzz_is_gone(void)
{
    struct pollfd requests = {FD_REQUEST, POLLIN, 0};
    return poll(&requests, 1, 0) > 0 && !(requests.revents & POLLIN);
}

static void serve_loop(entry_function entry)
{
    pid_t self = getpid();
    for (;;) {
        int status = 0;
        pid_t child = fork();
        if (child == 0)
            loop_in_child(entry, self);
        if (child < 0)
            _exit(0);
        serve_page->pid = (uint32_t)child;
        while (waitpid(child, &status, 0) < 0 && errno == EINTR)
            continue;
        sweep_descendants();
        serve_page->pid = 0;
        if (serve_page->started != serve_page->ended) {
            serve_page->ended = serve_page->started;
            serve_reply(serve_page->started, status, 0, 0);
        } else if (ddfuzz_is_gone()) {
            _exit(0);
        }
    }
}

static int serve_by_fork(entry_function entry, int argc, char **argv, char **envp)
{
    struct request request;
    pid_t self = getpid();
    while (serve_next(&request)) {
        pid_t child = fork();
        if (child == 0) {
            serve_become_child(self);
            if (!entry)
                return program_main(argc, argv, envp);
            _exit(call_entry(entry, STDIN_FILENO, request.length) & 0xff);
        }
        if (child < 0) {
            serve_reply(request.seq, 0, errno, 0);
            continue;
        }
        serve_page->pid = (uint32_t)child;
        serve_finish(&request, child);
    }
    _exit(0);
}

static int serve(int argc, char **argv, char **envp)
{
    const char *mode = getenv("DDFUZZ_MODE"), *offset = getenv("DDFUZZ_ENTRY");
    if (!mode)
        return program_main(argc, argv, envp);
    int loop = strcmp(mode, "loop") == 0, once = strcmp(mode, "once") == 0;
    entry_function entry = offset ? entry_from(offset) : NULL;
    forget_environment();
    if (once)
        return entry ? run_once(entry) : 127;
    prctl(PR_SET_CHILD_SUBREAPER, 1); /* not kept over execve by every kernel */
    if (has_threads()) {
        serve_hello(TROUBLE_THREADS, 0);
        _exit(0);
    }
    serve_map_page(loop);
    serve_hello(TROUBLE_NONE, 0);
    if (loop)
        serve_loop(entry);
    return serve_by_fork(entry, argc, argv, envp);
}

__attribute__((visibility("default"))) int
__libc_start_main(main_function main, int argc, char **argv, void (*init)(void),
                  void (*fini)(void), void (*rtld_fini)(void), void *stack_end)
{
    start_function start = (start_function)dlsym(RTLD_NEXT, "__libc_start_main");
    if (!start)
        _exit(127);
    program_main = main;
    return start(serve, argc, argv, init, fini, rtld_fini, stack_end);
}
