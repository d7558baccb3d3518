/* The runtime that is preloaded into an unmodified program. It replaces __libc_start_main, lets
 * libc start the program as usual (so that all constructors run), and is called in place of `main`:
 *
 *   fork    each request forks a child that continues into the program's `main`
 *   defer   each request forks a child where runs begin to differ (defer.c)
 *   entry   each request forks a child that calls the entry function on the input
 *   loop    one child calls the entry function for many inputs, until it dies (loop.c)
 *   once    calls the entry function on stdin, once, without serving (to be traced)
 *   pass    continues into the program's `main` (to be observed) */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "defer.h"
#include "entry.h"
#include "loop.h"
#include "serve.h"
#include "spare.h"
#include "sweep.h"
#include "terminal.h"
#include "wait_wrappers.h"

typedef int (*main_function)(int, char **, char **);
typedef int (*start_function)(main_function, int, char **, void (*)(void), void (*)(void),
                              void (*)(void), void *);

static main_function program_main;
/* The program's action for SIGCHLD, restored in children: the server must reap its children
 * itself. */
static struct sigaction on_child;

static int has_threads(void)
{
    struct stat tasks; /* two links, and one per thread */
    return stat("/proc/self/task", &tasks) == 0 && tasks.st_nlink > 3;
}

static int has_children(void)
{
    siginfo_t info;
    return waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) == 0;
}

static int lacks_descriptors(void)
{
    return fcntl(FD_REQUEST, F_GETFD) < 0 || fcntl(FD_INPUT, F_GETFD) < 0
           || fcntl(FD_PAGE, F_GETFD) < 0;
}

/* Returns why this process cannot serve, or TROUBLE_NONE. */
static enum trouble why_unfit(void)
{
    if (has_threads())
        return TROUBLE_THREADS; /* threads do not survive a fork */
    if (has_children())
        return TROUBLE_CHILDREN; /* sweeping after the first run would kill them */
    return lacks_descriptors() ? TROUBLE_DESCRIPTORS : TROUBLE_NONE;
}

/* Removes ddfuzz's variables: the target and its children must not see them, nor become servers. */
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
    unsetenv("DDFUZZ_PID");
    unsetenv("DDFUZZ_OUTSIDE");
    unsetenv("DDFUZZ_ENTRY");
    unsetenv("DDFUZZ_INPUTS");
}

/* Calls the entry function on stdin. */
static int run_once(const struct entry_point *entry)
{
    struct stat facts;
    uint8_t *input;
    if (fstat(STDIN_FILENO, &facts) < 0
        || entry_input(STDIN_FILENO, 0, (size_t)facts.st_size, &input))
        return 127;
    return entry_call(entry, input, (size_t)facts.st_size);
}

/* In a child that was forked before its request: waits for it. The fork then overlaps with
 * ddfuzz's work after the previous run, and a request wakes the right process directly. */
static void await_request(struct request *request)
{
    terminal_lead();
    if (!serve_next(request))
        _exit(0);
    serve_page->started = request->seq;
}

/* Calls the entry function once. */
static void enter(const struct entry_point *entry, const struct request *request)
{
    uint8_t *input;
    int refused = entry_input(STDIN_FILENO, 0, request->count, &input);
    if (refused) {
        serve_page->exec_errno = refused; /* the server replies */
        _exit(127);
    }
    serve_unmap_page();
    _exit(entry_call(entry, input, request->count));
}

static int ddfuzz_is_gone(void)
{
    struct pollfd requests = {FD_REQUEST, POLLIN, 0};
    return poll(&requests, 1, 0) > 0 && !(requests.revents & POLLIN);
}

/* Replies for a child that has ended, if it died during a run. */
static void reply_for(int status, uint64_t cpu_us)
{
    uint64_t seq = serve_page->started;
    if (seq != serve_page->ended) {
        serve_page->ended = seq;
        serve_reply(seq, status, serve_page->exec_errno, cpu_us);
    } else if (ddfuzz_is_gone()) {
        _exit(0);
    }
}

/* Prepares a new child for its run, on which the caller continues. */
static void begin_run(const struct entry_point *entry)
{
    struct request request;
    await_request(&request);
    if (request.flags & REQUEST_TRACED)
        serve_await_tracer(&request);
    sigaction(SIGCHLD, &on_child, NULL);
    serve_become_child();
    if (entry->function)
        enter(entry, &request);
    serve_unmap_page();
}

/* Forks a child by `new_child` for each request; returns in each child. */
static void serve_children(const struct entry_point *entry, pid_t (*new_child)(void))
{
    pid_t self = getpid();
    for (;;) {
        serve_page->exec_errno = 0;
        pid_t child = new_child();
        if (child == 0) {
            die_with(self);
            begin_run(entry);
            return;
        }
        if (child < 0) {
            poll(NULL, 0, 1); /* limit on processes; ddfuzz waits */
            continue;
        }
        struct rusage usage;
        int status = serve_await_end(child, &usage);
        serve_sweep();
        if (!entry->function) /* in a loop nothing would report it */
            wait_wrappers_collect(serve_page);
        reply_for(status, cpu_micros(&usage));
    }
}

/* Forks a child of a loop; a spare one waits for its turn first. */
static pid_t fork_looping(const struct entry_point *entry, int is_spare)
{
    pid_t self = getpid(), child = fork();
    if (child != 0)
        return child;
    struct request request;
    die_with(self);
    if (is_spare)
        spare_await_turn();
    await_request(&request);
    sigaction(SIGCHLD, &on_child, NULL);
    loop_serve(entry, request);
}

/* While one child runs inputs, the next one is forked and waits: forking a process with a
 * sanitizer's shadow memory takes longer than most runs. */
static void serve_loop(const struct entry_point *entry)
{
    pid_t child = -1;
    for (;;) {
        while (child < 0 && (child = fork_looping(entry, 0)) < 0)
            poll(NULL, 0, 1); /* limit on processes; ddfuzz waits */
        pid_t spare = spare_prepare() ? fork_looping(entry, 1) : -1;
        struct rusage usage;
        int status = serve_await_end(child, &usage);
        if (!sweep_all_but(spare))
            spare = -1;
        reply_for(status, 0);
        serve_page->exec_errno = 0;
        child = spare > 0 && spare_begin() ? spare : -1;
        spare_dismiss();
    }
}

/* The server reaps its children itself. */
static void take_over_children(void)
{
    struct sigaction by_default = {.sa_handler = SIG_DFL};
    sigaction(SIGCHLD, &by_default, &on_child);
}

/* Serves at a deferred fork point; returns in each child. */
static void serve_at(int call)
{
    static const struct entry_point none;
    take_over_children();
    serve_hello(TROUBLE_NONE, call);
    serve_children(&none, defer_new_child);
}

/* Does not call strcmp, which an observed run would record. */
static int is_mode(const char *mode, const char *name)
{
    while (*mode && *mode == *name)
        mode++, name++;
    return *mode == *name;
}

/* A number in a variable of the launcher; 0 if it is not set. */
static pid_t number_in(const char *variable)
{
    const char *number = getenv(variable);
    return number ? (pid_t)strtol(number, NULL, 10) : 0;
}

static int serve(int argc, char **argv, char **envp)
{
    const char *mode = getenv("DDFUZZ_MODE");
    if (!mode)
        return program_main(argc, argv, envp);
    int loop = is_mode(mode, "loop"), once = is_mode(mode, "once");
    int pass = is_mode(mode, "pass"), defer = is_mode(mode, "defer");
    int meant = number_in("DDFUZZ_PID") == getpid(); /* not a program that the target has started */
    sweep_within_signal_scope(number_in("DDFUZZ_OUTSIDE"));
    struct entry_point entry = entry_from(getenv("DDFUZZ_ENTRY"));
    const char *inputs = getenv("DDFUZZ_INPUTS"); /* stays where it is when it is unset */
    forget_environment();
    if (pass || (!meant && !once))
        return program_main(argc, argv, envp);
    if (entry.initialize)
        entry.initialize(&argc, &argv);
    if (once)
        return entry.function ? run_once(&entry) : 127;
    prctl(PR_SET_CHILD_SUBREAPER, 1); /* some kernels reset it at execve */
    enum trouble unfit = why_unfit();
    if (unfit != TROUBLE_NONE) {
        serve_hello(unfit, 0);
        _exit(0);
    }
    serve_map_page();
    if (loop)
        loop_prepare(&entry);
    wait_wrappers_prepare();
    if (defer && inputs && defer_fork(inputs, serve_at))
        return program_main(argc, argv, envp);
    take_over_children();
    serve_hello(TROUBLE_NONE, FORK_AT_MAIN);
    if (loop)
        serve_loop(&entry);
    serve_children(&entry, fork);
    return program_main(argc, argv, envp);
}

/* The next definition of __libc_start_main, which this library's hides. */
static start_function next_start(void)
{
    void *found = dlsym(RTLD_NEXT, "__libc_start_main");
    start_function start;
    memcpy(&start, &found, sizeof start); /* ISO C has no conversion between the two */
    return start;
}

__attribute__((visibility("default"))) int
__libc_start_main(main_function main, int argc, char **argv, void (*init)(void),
                  void (*fini)(void), void (*rtld_fini)(void), void *stack_end)
{
    start_function start = next_start();
    if (!start)
        _exit(127);
    program_main = main;
    return start(serve, argc, argv, init, fini, rtld_fini, stack_end);
}
