/* The tiny process between ddfuzz and a target. It starts as the *keeper*: it outlives whatever
 * happens to ddfuzz or the server just long enough to kill all descendants. Its child, the
 * *seat*, takes on limits, identity and directory, and then becomes the server:
 *
 *   serve   runs the program with execve for each request (the way `command`)
 *   exec    becomes the program, which serves by the injected runtime
 *   trace   the same, but each child first says that it is ready and waits for one byte, so
 *           that ddfuzz can seize it before its execve
 *
 * Usage: launcher MODE [-o VALUE]... -- PROGRAM ARGV0 [ARG]... */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/personality.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "serve.h"

extern char **environ;

struct options {
    const char *mode, *directory, *cgroup, *preload, *inject_mode, *entry;
    uid_t uid;
    gid_t gid;
    int drop, fixed_addresses;
    rlim_t memory, file_size, processes;
    char *program, **argv;
};

static void fail(int detail)
{
    serve_hello(TROUBLE_SETUP, detail);
    _exit(0);
}

static void parse(int argc, char **argv, struct options *o)
{
    int option;
    o->mode = argv[1];
    optind = 2;
    while ((option = getopt(argc, argv, "d:g:p:m:e:u:w:f:n:U:A")) != -1) {
        switch (option) {
        case 'd': o->directory = optarg; break;
        case 'g': o->cgroup = optarg; break;
        case 'p': o->preload = optarg; break;
        case 'm': o->inject_mode = optarg; break;
        case 'e': o->entry = optarg; break;
        case 'u': o->uid = (uid_t)strtoul(optarg, NULL, 10); o->drop = 1; break;
        case 'U': o->gid = (gid_t)strtoul(optarg, NULL, 10); break;
        case 'w': o->memory = strtoull(optarg, NULL, 10); break;
        case 'f': o->file_size = strtoull(optarg, NULL, 10); break;
        case 'n': o->processes = strtoull(optarg, NULL, 10); break;
        case 'A': o->fixed_addresses = 1; break;
        default: fail(EINVAL);
        }
    }
    if (argc - optind < 2)
        fail(EINVAL);
    o->program = argv[optind];
    o->argv = argv + optind + 1;
}

static void limit(int resource, rlim_t value)
{
    struct rlimit was, want = {value, value};
    if (value == 0 || getrlimit(resource, &was) < 0)
        return;
    if (was.rlim_max < value) /* stricter already */
        want.rlim_cur = want.rlim_max = was.rlim_max;
    if (setrlimit(resource, &want) < 0)
        fail(errno);
}

static void join_cgroup(const char *procs)
{
    int fd = open(procs, O_WRONLY | O_CLOEXEC);
    if (fd < 0 || write(fd, "0", 1) != 1)
        fail(errno);
    close(fd);
}

static void take_seat(const struct options *o, pid_t keeper)
{
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    if (o->cgroup)
        join_cgroup(o->cgroup);
    limit(RLIMIT_AS, o->memory);
    limit(RLIMIT_FSIZE, o->file_size);
    limit(RLIMIT_NPROC, o->processes);
    /* 1 and not 0: too small for a core file, and the only value that keeps a core_pattern
     * with a pipe from starting its collector for each crash. */
    limit(RLIMIT_CORE, 1);
    if (o->fixed_addresses) {
        int now = personality(0xffffffff);
        if (now != -1)
            personality((unsigned long)now | ADDR_NO_RANDOMIZE);
    }
    if (o->drop && (setgroups(0, NULL) < 0 || setresgid(o->gid, o->gid, o->gid) < 0
                    || setresuid(o->uid, o->uid, o->uid) < 0))
        fail(errno);
    if (o->directory && chdir(o->directory) < 0)
        fail(errno);
    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); /* a setuid program gains nothing */
    die_with(keeper); /* after the change of identity, which would clear it */
}

static void set_preload(const struct options *o)
{
    const char *own = getenv("LD_PRELOAD");
    char *list = NULL;
    if (own && *own) {
        list = malloc(strlen(o->preload) + strlen(own) + 2);
        if (!list)
            fail(ENOMEM);
        strcpy(list, o->preload);
        strcat(list, ":");
        strcat(list, own);
        setenv("DDFUZZ_PRELOAD", own, 1);
    }
    setenv("LD_PRELOAD", list ? list : o->preload, 1);
    /* Without it each child would look up the same symbols again. */
    if (!getenv("LD_BIND_NOW")) {
        setenv("LD_BIND_NOW", "1", 1);
        setenv("DDFUZZ_BIND_NOW", "1", 1);
    }
    setenv("DDFUZZ_MODE", o->inject_mode, 1);
    if (o->entry)
        setenv("DDFUZZ_ENTRY", o->entry, 1);
}

/* In the child of a run; with vfork it still uses our memory. */
static void execute(const struct options *o)
{
    execve(o->program, o->argv, environ);
    serve_page->exec_errno = errno;
    _exit(127);
}

static void lead_group(pid_t parent)
{
    die_with(parent);
    setpgid(0, 0);
}

/* Lets ddfuzz seize this child, which then goes on to its execve. */
static void await_tracer(const struct request *request)
{
    char go;
    serve_page->pid = (uint32_t)getpid();
    serve_reply(request->seq, getpid(), 0, CPU_READY);
    if (!read_whole(FD_REQUEST, &go, 1))
        _exit(0);
    if (request->flags & REQUEST_RANDOM_ADDRESSES)
        personality((unsigned long)personality(0xffffffff) & ~(unsigned long)ADDR_NO_RANDOMIZE);
}

static pid_t start_run(const struct options *o, const struct request *request, int traced)
{
    pid_t self = getpid(), child;
    if (traced) {
        child = fork();
        if (child == 0) {
            lead_group(self);
            await_tracer(request);
            serve_become_child();
            execute(o);
        }
    } else {
        child = vfork();
        if (child == 0) {
            serve_page->pid = (uint32_t)getpid();
            lead_group(self);
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
    serve_hello(TROUBLE_NONE, 0);
    while (serve_next(&request)) {
        serve_page->exec_errno = 0;
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
    execve(o->program, o->argv, environ);
    serve_hello(TROUBLE_EXEC, errno);
    _exit(127);
}

static void on_child(int number)
{
    (void)number; /* its only job is to end ppoll */
}

static void keep(pid_t seat)
{
    struct pollfd lifeline = {FD_LIFELINE, POLLIN, 0};
    sigset_t open_mask;
    sigemptyset(&open_mask);
    for (;;) {
        pid_t ended;
        while ((ended = waitpid(-1, NULL, WNOHANG)) > 0) {
            if (ended == seat) {
                sweep_descendants();
                _exit(0);
            }
        }
        if (ppoll(&lifeline, 1, NULL, &open_mask) > 0) {
            kill(seat, SIGKILL);
            sweep_descendants();
            _exit(0);
        }
    }
}

/* Whatever ddfuzz was born with and never closed is not the target's. */
static void close_strangers(void)
{
#ifdef SYS_close_range
    if (syscall(SYS_close_range, 3, FD_FIRST - 1, 0) == 0
        && syscall(SYS_close_range, FD_LAST + 1, ~0u, 0) == 0)
        return;
#endif
    for (int fd = 3; fd < 1024; fd++)
        if (fd < FD_FIRST || fd > FD_LAST)
            close(fd);
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

int main(int argc, char **argv)
{
    struct options options = {0};
    if (argc < 2)
        return 2;
    reset_signals();
    close_strangers();
    setsid();
    parse(argc, argv, &options);
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    pid_t keeper = getpid();

    /* SIGCHLD is let in only inside ppoll, so none is missed. */
    struct sigaction action = {.sa_handler = on_child};
    sigset_t child_only, none;
    sigemptyset(&child_only);
    sigaddset(&child_only, SIGCHLD);
    sigprocmask(SIG_BLOCK, &child_only, NULL);
    sigaction(SIGCHLD, &action, NULL);

    pid_t seat = fork();
    if (seat < 0)
        fail(errno);
    if (seat > 0) {
        for (int fd = 0; fd <= FD_LAST; fd++)
            if (fd != FD_LIFELINE)
                close(fd);
        keep(seat);
    }
    action.sa_handler = SIG_DFL;
    sigaction(SIGCHLD, &action, NULL);
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    close(FD_LIFELINE);
    take_seat(&options, keeper);
    if (options.preload)
        set_preload(&options);
    if (strcmp(options.mode, "exec") == 0)
        become_program(&options);
    serve_by_exec(&options, strcmp(options.mode, "trace") == 0);
}
