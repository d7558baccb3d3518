/* The runtime that is preloaded into an unmodified program. It replaces __libc_start_main, lets
 * libc start the program as usual (so that all constructors run), and is called in place of `main`:
 *
 *   fork    each request forks a child that continues into the program's `main`
 *   defer   each request forks a child where runs begin to differ (defer.c)
 *   restore one child runs many inputs from there and puts back what a run has changed; what it
 *           refuses is forked (restore.c)
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

#include "blocks.h"
#include "defer.h"
#include "entry.h"
#include "environment.h"
#include "loop.h"
#include "restore.h"
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
    blocks_begin(request.seq, defer_continuation());
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
        serve_sweep(status);
        if (!entry->function) /* in a loop nothing would report it */
            wait_wrappers_collect(serve_page);
        reply_for(status, cpu_micros(&usage));
    }
}

typedef pid_t (*fork_function)(void);

/* Returns glibc's fork without the locks that libraries take around it: AddressSanitizer's take
 * longer than the fork. This process has one thread, and so no lock is held. */
static fork_function bare_fork(void)
{
    void *found = dlsym(RTLD_DEFAULT, "_Fork"); /* from glibc 2.34 on */
    fork_function bare;
    memcpy(&bare, &found, sizeof bare);
    return bare ? bare : fork;
}

/* Forks a child of a loop; a spare one waits for its turn first. */
static pid_t fork_looping(const struct entry_point *entry, int is_spare, fork_function fork_child)
{
    pid_t self = getpid(), child = fork_child();
    if (child != 0)
        return child;
    struct request request;
    die_with(self);
    if (is_spare)
        spare_await_turn();
    await_request(&request);
    sigaction(SIGCHLD, &on_child, NULL);
    if (request.flags & REQUEST_TRACED)
        loop_trace(entry, &request);
    loop_serve(entry, request);
}

/* After the first run of a request whose inputs have a process each, which has ended with `status`:
 * makes the others, and returns the status of the last. Sets `*spare` to -1 if that had to be
 * killed. */
static int run_others(const struct entry_point *entry, int status, pid_t *spare,
                      fork_function fork_child)
{
    pid_t self = getpid();
    for (uint64_t done = 1; loop_has_more(done, status); done++) {
        struct rusage usage;
        pid_t child = fork_child();
        if (child == 0) {
            die_with(self);
            terminal_lead();
            sigaction(SIGCHLD, &on_child, NULL);
            loop_alone(entry, done);
        }
        if (child < 0)
            break; /* limit on processes; ddfuzz asks for the rest again */
        status = serve_await_end(child, &usage);
        if (!sweep_all_but(*spare))
            *spare = -1;
    }
    serve_page->each.count = 0;
    return status;
}

/* While one child runs inputs, the next one is forked and waits: forking a process with a
 * sanitizer's shadow memory takes longer than most runs. */
static void serve_loop(const struct entry_point *entry)
{
    pid_t child = -1;
    fork_function bare = bare_fork();
    for (;;) {
        while (child < 0 && (child = fork_looping(entry, 0, bare)) < 0)
            poll(NULL, 0, 1); /* limit on processes; ddfuzz waits */
        pid_t spare = spare_prepare() ? fork_looping(entry, 1, bare) : -1;
        struct rusage usage;
        int status = serve_await_end(child, &usage);
        if (!sweep_all_but(spare))
            spare = -1;
        status = run_others(entry, status, &spare, bare);
        reply_for(status, serve_page->child ? 0 : cpu_micros(&usage));
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

/* Forks a runner, which sends its messages to the read end FD_REFUSED. */
static pid_t fork_runner(void)
{
    int ends[2];
    pid_t self = getpid(), runner = -1;
    if (pipe2(ends, O_CLOEXEC) < 0 || dup2(ends[0], FD_REFUSED) < 0
        || dup2(ends[1], FD_REFUSALS) < 0)
        return -1;
    close(ends[0]);
    close(ends[1]);
    while ((runner = defer_new_child()) < 0)
        poll(NULL, 0, 1); /* limit on processes; ddfuzz waits */
    if (runner == 0) {
        die_with(self);
        terminal_lead();
        sigaction(SIGCHLD, &on_child, NULL);
        close(FD_REFUSED);
        restore_run();
    }
    close(FD_REFUSALS); /* so that the end of the runner ends its messages */
    return runner;
}

/* Starts a runner; `*runner` is its process id. Returns why it cannot run the program. */
static enum unfit start_runner(pid_t *runner)
{
    struct runner_message message;
    *runner = fork_runner();
    if (*runner < 0)
        return UNFIT_MEMORY;
    serve_page->child = *runner;
    if (!read_whole(FD_REFUSED, &message, sizeof message) || message.seq != 0)
        return UNFIT_ENDED;
    return (enum unfit)message.reason;
}

/* In a fork that makes a run: becomes the program, as it is without a runner. */
static void become_refused(const struct runner_message *message)
{
    sigaction(SIGCHLD, &on_child, NULL);
    if (message->captured) {
        dup2(FD_CAPTURES, STDOUT_FILENO);
        dup2(FD_CAPTURES + 1, STDERR_FILENO);
    }
    blocks_begin(message->seq, defer_continuation());
    serve_become_child();
    serve_unmap_page();
    restore_forget();
}

/* Makes a run that the runner has refused, by a fork; returns 0 in that fork, which runs the
 * program on. */
static int make_refused(const struct runner_message *message, pid_t *runner)
{
    struct rusage usage;
    pid_t self = getpid(), child;
    wait_wrappers_collect(serve_page); /* what the refused run has reported */
    serve_page->refused = message->reason;
    if (message->captured && message->reason != REFUSED_ASKED) {
        /* What the runner has written is in the capture: ddfuzz clears it and asks for a fork. */
        serve_page->forked = 0;
        reply_for(SIGKILL, 0);
        return 1;
    }
    while ((child = defer_new_child()) < 0)
        poll(NULL, 0, 1);
    if (child == 0) {
        die_with(self);
        terminal_lead();
        become_refused(message);
        return 0;
    }
    serve_page->child = child;
    int status = serve_await_end(child, &usage);
    serve_page->forked = sweep_others(runner);
    wait_wrappers_collect(serve_page);
    serve_page->child = *runner;
    reply_for(status, cpu_micros(&usage));
    return 1;
}

/* Called when a runner has ended: replies for the run that the runner was making, whose result does
 * not count. If it was making none (it was killed with the leftover processes of a run that is
 * already answered), leaves the page as it is, since ddfuzz may not have read yet what the page
 * says of that run. */
static void finish_runner(pid_t runner)
{
    struct rusage usage;
    int is_answered = serve_page->started == serve_page->ended;
    if (runner > 0)
        serve_await_end(runner, &usage);
    if (is_answered) {
        sweep_descendants();
        wait_wrappers_forget();
        close(FD_REFUSED);
        if (ddfuzz_is_gone())
            _exit(0);
        return;
    }
    serve_sweep(SIGKILL); /* a runner ends by no exit: what it leaves gets no time to end */
    wait_wrappers_collect(serve_page);
    serve_page->refused = 0;
    close(FD_REFUSED);
    reply_for(SIGKILL, 0);
}

/* Serves by runners at a deferred fork point; returns in each fork that makes a run. */
static void serve_restored(int call)
{
    int error, served = 0;
    const ucontext_t *context = defer_context(&error);
    take_over_children();
    enum unfit unfit = call == FORK_AT_FAULT ? UNFIT_POINT : restore_prepare(context, error);
    for (;; served = 1) {
        struct runner_message message;
        pid_t runner = -1;
        if (unfit == UNFIT_NONE)
            unfit = start_runner(&runner);
        if (!served)
            serve_hello(unfit == UNFIT_NONE ? TROUBLE_NONE : TROUBLE_UNFIT,
                        unfit == UNFIT_NONE ? call : (int)unfit);
        if (unfit != UNFIT_NONE)
            _exit(0);
        while (read_whole(FD_REFUSED, &message, sizeof message))
            if (!make_refused(&message, &runner))
                return;
        finish_runner(runner);
    }
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

/* A copy of a variable of the launcher, which outlives the variable; NULL if it is not set, or too
 * long. */
static const char *copy_of(const char *variable)
{
    static char copy[1024];
    const char *value = getenv(variable);
    return value && strlen(value) < sizeof copy ? strcpy(copy, value) : NULL;
}

static int serve(int argc, char **argv, char **envp)
{
    const char *mode = getenv("DDFUZZ_MODE");
    if (!mode)
        return program_main(argc, argv, envp);
    int loop = is_mode(mode, "loop"), once = is_mode(mode, "once");
    int pass = is_mode(mode, "pass"), defer = is_mode(mode, "defer");
    int restore = is_mode(mode, "restore");
    int meant = number_in("DDFUZZ_PID") == getpid(); /* not a program that the target has started */
    sweep_within_signal_scope(number_in("DDFUZZ_OUTSIDE"));
    struct entry_point entry = entry_from(getenv("DDFUZZ_ENTRY"));
    const char *inputs = copy_of("DDFUZZ_INPUTS");
    int freeze = getenv("DDFUZZ_FREEZE") != NULL;
    environment_forget();
    if (pass || (!meant && !once))
        return program_main(argc, argv, envp);
    if (entry.initialize)
        entry.initialize(&argc, &argv);
    if (once)
        return entry.function ? run_once(&entry) : 127;
    entry_prepare_reports(&entry);
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
    blocks_arm();
    if ((defer || restore) && inputs
        && defer_fork(inputs, freeze, restore ? serve_restored : serve_at))
        return program_main(argc, argv, envp);
    if (restore) {
        serve_hello(TROUBLE_UNFIT, UNFIT_POINT);
        _exit(0);
    }
    take_over_children();
    serve_hello(TROUBLE_NONE, FORK_AT_MAIN);
    if (loop)
        serve_loop(&entry);
    /* A program's `main` may count on what its libraries do at a fork. */
    serve_children(&entry, entry.function ? bare_fork() : fork);
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
