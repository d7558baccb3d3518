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
#include <sys/resource.h>
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

/* In the child of the server, forked ahead of its first request: the fork's time passes while
 * ddfuzz is busy with the run before, and the request wakes the right process at once. */
static void await_request(struct request *request, pid_t parent)
{
    die_with(parent);
    setpgid(0, 0);
    if (!serve_next(request))
        _exit(0);
    serve_page->started = request->seq;
}

static void loop_in_child(entry_function entry, struct request request)
{
    for (int runs = 0; runs < RUNS_PER_CHILD; runs++) {
        int result = call_entry(entry, FD_INPUT, request.length);
        serve_page->ended = request.seq;
        serve_reply(request.seq, (result & 0xff) << 8, 0, 0);
        if (!serve_next(&request))
            _exit(0);
        serve_page->started = request.seq;
    }
    /* The last request was taken and must be answered; the next child cannot take it. */
    _exit(call_entry(entry, FD_INPUT, request.length) & 0xff);
}

static int ddfuzz_is_gone(void)
{
    struct pollfd requests = {FD_REQUEST, POLLIN, 0};
    return poll(&requests, 1, 0) > 0 && !(requests.revents & POLLIN);
}

/* Waits for the child, and speaks for it if it died in a run. */
static void attend(pid_t child, int loop)
{
    int status = 0;
    struct rusage usage;
    serve_page->pid = (uint32_t)child;
    while (wait4(child, &status, 0, &usage) < 0)
        if (errno != EINTR)
            _exit(0);
    serve_page->pid = 0;
    sweep_descendants();
    uint64_t seq = serve_page->started;
    if (seq != serve_page->ended) {
        serve_page->ended = seq;
        serve_reply(seq, status, 0, loop ? 0 : cpu_micros(&usage));
    } else if (ddfuzz_is_gone()) {
        _exit(0);
    }
}

static int serve_children(entry_function entry, int loop, int argc, char **argv, char **envp)
{
    struct request request;
    pid_t self = getpid();
    for (;;) {
        pid_t child = fork();
        if (child == 0)
            break;
        if (child > 0)
            attend(child, loop);
        else
            poll(NULL, 0, 1); /* the limit on processes; ddfuzz waits */
    }
    await_request(&request, self);
    if (loop)
        loop_in_child(entry, request);
    serve_unmap_page();
    serve_become_child();
    if (entry)
        _exit(call_entry(entry, STDIN_FILENO, request.length) & 0xff);
    return program_main(argc, argv, envp);
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
    serve_map_page();
    serve_hello(TROUBLE_NONE, 0);
    return serve_children(entry, loop, argc, argv, envp);
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
