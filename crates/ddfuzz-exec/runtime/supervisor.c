#define _GNU_SOURCE
#include "supervisor.h"

#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "signal_scope.h"
#include "protocol.h"
#include "sweep.h"

static void on_child(int number)
{
    (void)number; /* its only purpose is to interrupt ppoll */
}

/* SIGCHLD is unblocked only inside ppoll, so that none is missed. */
static void hold_child_signals(void)
{
    struct sigaction action = {.sa_handler = on_child};
    sigset_t child_only;
    sigemptyset(&child_only);
    sigaddset(&child_only, SIGCHLD);
    sigprocmask(SIG_BLOCK, &child_only, NULL);
    sigaction(SIGCHLD, &action, NULL);
}

static void release_child_signals(void)
{
    struct sigaction action = {.sa_handler = SIG_DFL};
    sigset_t none;
    sigaction(SIGCHLD, &action, NULL);
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
}

/* Closes all descriptors below the supervisor pipe, except `wanted`. */
static void close_all_but(int wanted)
{
    for (int fd = 0; fd < FD_SUPERVISOR_PIPE; fd++)
        if (fd != wanted)
            close(fd);
}

/* Time for which the outer supervisor waits for the inner one to kill everything, in
 * milliseconds. */
enum { PATIENCE = 3000 };

static void await(pid_t child, int milliseconds)
{
    while (milliseconds-- > 0 && waitpid(child, NULL, WNOHANG) == 0)
        poll(NULL, 0, 1);
}

/* Waits until the child has ended or one of the pipes is closed, and then kills all its
 * descendants. The supervisor pipe stays open until that is done, which tells ddfuzz. */
static void supervise(pid_t child, int second, int patience)
{
    struct pollfd supervisor_pipes[] = {{FD_SUPERVISOR_PIPE, POLLIN, 0}, {second, POLLIN, 0}};
    sigset_t open_mask;
    sigemptyset(&open_mask);
    for (;;) {
        pid_t ended;
        while ((ended = waitpid(-1, NULL, WNOHANG)) > 0 && ended != child)
            ;
        if (ended == child || ended < 0)
            break;
        if (ppoll(supervisor_pipes, 2, NULL, &open_mask) > 0) {
            await(child, patience);
            break;
        }
    }
    sweep_descendants();
    _exit(0);
}

/* There are two supervisors, each a child subreaper, because one may be killed (the kernel is
 * out of memory, or somebody kills by name). If the outer one dies, the inner one notices at
 * their pipe; if the inner one dies, its descendants become children of the outer one. The inner
 * one has its own signal scope, and can kill all its descendants with one call. */
pid_t start_supervisors(const struct isolation *wanted)
{
    int link[2];
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    hold_child_signals();
    if (namespaces_children(wanted) < 0 || pipe2(link, O_CLOEXEC) < 0)
        return -1;
    pid_t below = fork();
    if (below < 0)
        return -1;
    if (below > 0) {
        close_all_but(link[1]);
        supervise(below, -1, PATIENCE); /* poll ignores a negative descriptor */
    }
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    close(link[1]);
    if (namespaces_rest(wanted) < 0)
        return -1;
    /* The first process of a PID namespace has no parent inside and needs no signal scope: all
     * others die with it. */
    pid_t inner = getpid(), outer = getppid();
    if (!(wanted->namespaces & CLONE_NEWPID) && limit_signal_scope(wanted->open_count > 0)
        && outer > 1)
        sweep_within_signal_scope(outer);
    below = fork();
    if (below < 0)
        return -1;
    if (below > 0) {
        close_all_but(link[0]);
        supervise(below, link[0], 0);
    }
    close(link[0]);
    release_child_signals();
    close(FD_SUPERVISOR_PIPE);
    return inner;
}
