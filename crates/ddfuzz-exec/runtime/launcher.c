/* The small process between ddfuzz and a target. It starts as the outer supervisor (supervisor.c),
 * which outlives the target only to kill its descendants. Its grandchild takes on limits, identity
 * and directory, and then becomes the server:
 *
 *   serve   runs the program with execve for each request (the way `command`)
 *   exec    becomes the program, which serves by the injected runtime
 *   afl     becomes the program, which serves by the fork server that AFL++ compiled into it
 *   trace   like serve, but each child reports that it is ready and waits for one byte, so that
 *           ddfuzz can seize it before its execve
 *
 * Usage: launcher MODE [-o VALUE]... -- PROGRAM ARGV0 [ARG]...
 *    or: launcher support DIRECTORY, which prints the supported parts of a sandbox */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/personality.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "environment.h"
#include "rlimits.h"
#include "snapshot.h"
#include "signal_scope.h"
#include "namespaces.h"
#include "supervisor.h"
#include "observe.h"
#include "support.h"
#include "serve.h"
#include "sweep.h"
#include "terminal.h"
#include "restrict.h"

extern char **environ;

struct options {
    const char *mode, *preload, *inject_mode, *entry, *inputs;
    struct confinement confinement;
    struct isolation isolation;
    struct restrictions restrictions;
    char *program, **argv;
    pid_t outside; /* supervisor outside of the signal scope; 0 without one */
    int observed;  /* runs get FD_OBSERVED */
    int copied;    /* runs get FD_SNAPSHOT */
    int terminal;  /* runs get FD_TERMINAL */
    int code;      /* runs get FD_CODE */
    int freeze;    /* runs share what the program's start reads of time and randomness */
};

static void fail(int detail)
{
    serve_hello(TROUBLE_SETUP, detail);
    _exit(0);
}

/* Parses a number; the launcher fails if the argument is anything else. */
static unsigned long long number_from(const char *text)
{
    char *end;
    errno = 0;
    unsigned long long number = strtoull(text, &end, 10);
    if (*text < '0' || *text > '9' || *end || errno)
        fail(EINVAL);
    return number;
}

/* Parses a sandbox option; returns 0 if it is none. */
static int parse_sandbox(int option, struct options *o)
{
    struct isolation *i = &o->isolation;
    struct restrictions *w = &o->restrictions;
    switch (option) {
    case 'N': i->namespaces = (int)number_from(optarg); break;
    case 'R': i->read_only = 1; break;
    case 's': i->scratch = optarg; break;
    case 'B': i->bytes = number_from(optarg); break;
    case 'I': i->files = number_from(optarg); break;
    case 'L': w->access = number_from(optarg); break;
    case 'W':
        if (i->open_count == MOST_OPEN)
            fail(E2BIG);
        i->open[i->open_count++] = optarg;
        break;
    case 'V':
        if (i->cover_count == MOST_OPEN)
            fail(E2BIG);
        i->cover[i->cover_count++] = optarg;
        break;
    case 'F': w->filtered = 1; break;
    case 'X': w->strict = 1; break;
    default: return 0;
    }
    return 1;
}

static void parse(int argc, char **argv, struct options *o)
{
    struct confinement *c = &o->confinement;
    int option;
    o->mode = argv[1];
    optind = 2;
    while ((option = getopt(argc, argv, "d:g:p:m:e:i:u:w:f:n:U:AOCTKZN:Rs:B:I:L:W:FXV:")) != -1) {
        switch (option) {
        case 'd': c->directory = optarg; break;
        case 'g': /* opened before the sandbox is entered */
            if ((c->cgroup = open(optarg, O_WRONLY | O_CLOEXEC)) < 0)
                fail(errno);
            break;
        case 'p': o->preload = optarg; break;
        case 'm': o->inject_mode = optarg; break;
        case 'e': o->entry = optarg; break;
        case 'i': o->inputs = optarg; break;
        case 'u': c->uid = (uid_t)number_from(optarg); c->drop = 1; break;
        case 'U': c->gid = (gid_t)number_from(optarg); break;
        case 'w': c->data = number_from(optarg); break;
        case 'f': c->file_size = number_from(optarg); break;
        case 'n': c->processes = number_from(optarg); break;
        case 'A': c->fixed_addresses = 1; break;
        case 'O': o->observed = 1; break;
        case 'C': o->copied = 1; break;
        case 'T': o->terminal = 1; break;
        case 'K': o->code = 1; break;
        case 'Z': o->freeze = 1; break;
        default:
            if (!parse_sandbox(option, o))
                fail(EINVAL);
        }
    }
    o->isolation.uid = c->drop ? c->uid : geteuid();
    o->isolation.gid = c->drop ? c->gid : getegid();
    o->restrictions.open = o->isolation.open;
    o->restrictions.open_count = o->isolation.open_count;
    if (argc - optind < 2 || (o->preload && !o->inject_mode))
        fail(EINVAL);
    o->program = argv[optind];
    o->argv = argv + optind + 1;
}

static void set_variable(const char *name, const char *value)
{
    if (setenv(name, value, 1) < 0)
        fail(errno);
}

static void set_number(const char *name, pid_t number)
{
    char text[16];
    snprintf(text, sizeof text, "%d", (int)number);
    set_variable(name, text);
}

/* Adds a variable at the end of the environment, also if it has one of that name. */
static void append_variable(char *variable)
{
    size_t count = 0;
    while (environ[count])
        count++;
    char **longer = malloc((count + 2) * sizeof *longer);
    if (!longer)
        fail(ENOMEM);
    memcpy(longer, environ, count * sizeof *longer);
    longer[count] = variable;
    longer[count + 1] = NULL;
    environ = longer;
}

/* Adds our libraries to LD_PRELOAD, before those of the user. The user's variable stays as it is,
 * and ours is a second one at the end of the environment: the dynamic loader takes the last. */
static void append_preload(const struct options *o)
{
    const char *own = getenv("LD_PRELOAD"), *name = "LD_PRELOAD=";
    char *variable = malloc(strlen(name) + strlen(o->preload) + 1 + (own ? strlen(own) : 0) + 1);
    if (!variable)
        fail(ENOMEM);
    strcpy(variable, name);
    strcat(variable, o->preload);
    if (own && *own) {
        strcat(variable, ":");
        strcat(variable, own);
    }
    append_variable(variable);
}

/* Adds the variables by which the runtime becomes a server; the runtime removes them all, from the
 * first of them to the end of the environment (environment.c). */
static void set_preload(const struct options *o)
{
    /* Only this process serves, not a program that the target starts before main. */
    set_number(FIRST_OWN_VARIABLE, getpid());
    /* Otherwise each child looks up the same symbols again. */
    if (!getenv("LD_BIND_NOW"))
        set_variable("LD_BIND_NOW", "1");
    set_number("DDFUZZ_OUTSIDE", o->outside);
    set_variable("DDFUZZ_MODE", o->inject_mode);
    if (o->entry)
        set_variable("DDFUZZ_ENTRY", o->entry);
    if (o->inputs)
        set_variable("DDFUZZ_INPUTS", o->inputs);
    if (o->freeze)
        set_variable("DDFUZZ_FREEZE", "1");
    append_preload(o);
}

/* Tries to execute the program; returns the errno. A program file that was just written is busy
 * while a concurrently forked process has it open, up to its own execve. */
static int try_execute(const struct options *o)
{
    for (int tries = 0; tries < 200; tries++) {
        execve(o->program, o->argv, environ);
        if (errno != ETXTBSY)
            break;
        poll(NULL, 0, 5);
    }
    return errno;
}

/* In the child of a run: executes the program. With vfork the child shares the server's memory. */
static void execute(const struct options *o)
{
    serve_page->exec_errno = try_execute(o);
    _exit(127);
}

static void lead(pid_t parent)
{
    die_with(parent);
    terminal_lead();
}

/* Lets ddfuzz seize this child before its execve. */
static void await_tracer(const struct request *request)
{
    serve_await_tracer(request);
    int now = personality(0xffffffff);
    if (now != -1 && request->flags & REQUEST_RANDOM_ADDRESSES)
        personality((unsigned long)now & ~(unsigned long)ADDR_NO_RANDOMIZE);
}

static pid_t start_run(const struct options *o, const struct request *request, int traced)
{
    pid_t self = getpid(), child;
    if (traced) {
        child = fork();
        if (child == 0) {
            lead(self);
            await_tracer(request);
            serve_become_child();
            execute(o);
        }
    } else {
        child = vfork();
        if (child == 0) {
            lead(self);
            serve_become_child();
            execute(o);
        }
    }
    return child;
}

static void serve_by_exec(const struct options *o, int traced)
{
    struct request request;
    serve_map_page();
    serve_hello(TROUBLE_NONE, FORK_AT_MAIN);
    while (serve_next(&request)) {
        serve_page->exec_errno = 0;
        serve_page->started = request.seq;
        pid_t child = start_run(o, &request, traced);
        if (child < 0)
            serve_reply(request.seq, 0, errno, 0);
        else
            serve_finish(&request, child);
    }
    _exit(0);
}

static void become_program(const struct options *o)
{
    serve_hello(TROUBLE_EXEC, try_execute(o));
    _exit(127);
}

/* Where AFL++'s fork servers expect their pipes (its config.h: FORKSRV_FD, and the next one). */
enum { AFL_CONTROL = 198, AFL_STATUS = 199 };

/* AFL++'s hello follows ours. Our descriptors stay open until execve, whose failure must be
 * reported. */
static void become_fork_server(const struct options *o)
{
    serve_hello(TROUBLE_NONE, FORK_AT_MAIN);
    if (dup2(FD_INPUT, STDIN_FILENO) < 0 || dup2(FD_REQUEST, AFL_CONTROL) < 0
        || dup2(FD_REPLY, AFL_STATUS) < 0)
        fail(errno);
    for (int fd = FD_FIRST; fd <= FD_OBSERVED; fd++)
        fcntl(fd, F_SETFD, FD_CLOEXEC); /* some are not open */
    become_program(o);
}

static void close_stranger(int fd)
{
    if (fd > STDERR_FILENO && (fd < FD_LOWEST || fd > FD_OBSERVED))
        close(fd);
}

/* Closes descriptors that ddfuzz inherited itself and never closed. */
static void close_strangers(void)
{
#ifdef SYS_close_range
    if (syscall(SYS_close_range, 3, FD_LOWEST - 1, 0) == 0
        && syscall(SYS_close_range, FD_OBSERVED + 1, ~0u, 0) == 0)
        return;
#endif
    int open_fds[1024], count = 0;
    DIR *listing = opendir("/proc/self/fd");
    struct dirent *entry;
    while (listing && count < 1024 && (entry = readdir(listing)))
        open_fds[count++] = atoi(entry->d_name);
    if (listing)
        closedir(listing);
    for (int i = 0; i < count; i++)
        close_stranger(open_fds[i]);
}

static void reset_signals(void)
{
    struct sigaction action = {.sa_handler = SIG_DFL};
    sigset_t none;
    for (int number = 1; number < NSIG; number++)
        sigaction(number, &action, NULL);
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
}

/* Closes the numbers of the protocol that ddfuzz has not passed to this launcher. */
static void close_unused(const struct options *o)
{
    if (!o->inject_mode || strcmp(o->inject_mode, "restore") != 0) {
        close(FD_SECOND);
        for (int fd = FD_WRITER; fd < FD_FILTERS; fd++)
            close(fd);
    }
    if (!o->code)
        close(FD_CODE);
    if (!o->observed)
        close(FD_OBSERVED);
    if (!o->copied)
        close(FD_SNAPSHOT);
    if (!o->terminal)
        close(FD_TERMINAL);
    if (!o->restrictions.access)
        close(FD_RULES);
    if (!o->restrictions.filtered)
        close(FD_FILTERS);
}

int main(int argc, char **argv)
{
    struct options options = {.confinement = {.cgroup = -1}};
    if (argc < 2)
        return 2;
    if (strcmp(argv[1], "support") == 0)
        return argc == 3 ? report_support(argv[2]) : 2;
    reset_signals();
    close_strangers();
    setsid();
    parse(argc, argv, &options);
    close_unused(&options);
    pid_t supervisor = start_supervisors(&options.isolation);
    if (supervisor < 0)
        fail(errno);
    setsid(); /* so that signals to the target's process group do not reach the supervisors */
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    int refused = confine(&options.confinement);
    if (refused)
        fail(refused);
    if (restrict_limits(&options.restrictions) < 0
        || namespaces_drop_rights(&options.isolation) < 0)
        fail(errno);
    die_with(supervisor); /* after the change of identity, which resets it */
    /* A sandbox's ruleset includes a signal scope. */
    if (options.restrictions.access ? signal_scope_supported() : limit_signal_scope(0))
        options.outside = supervisor;
    sweep_within_signal_scope(options.outside);
    if (options.preload)
        set_preload(&options);
    if (restrict_files(&options.restrictions) < 0 || restrict_calls(&options.restrictions) < 0)
        fail(errno);
    if (strcmp(options.mode, "exec") == 0)
        become_program(&options);
    if (strcmp(options.mode, "afl") == 0)
        become_fork_server(&options);
    serve_by_exec(&options, strcmp(options.mode, "trace") == 0);
}
