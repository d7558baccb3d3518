/* Starts processes in all the ways there are, as the first line of its stdin says; one of them
 * crashes, and the program exits with 0. Called with an argument, it crashes itself. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;
static char *self;
static int *volatile nowhere;

__attribute__((noinline)) static void crash(void)
{
    *nowhere = 1;
}

static void *crash_in_thread(void *nothing)
{
    crash();
    return nothing;
}

static void execute(void)
{
    execl(self, self, "crash", (char *)NULL);
    _exit(99);
}

static void crash_deeper(void)
{
    if (fork() == 0)
        crash();
    wait(NULL);
    _exit(5);
}

static void crash_beside(void)
{
    pthread_t thread;
    pthread_create(&thread, NULL, crash_in_thread, NULL);
    pthread_join(thread, NULL);
}

static void abort_itself(void)
{
    abort();
}

static void end_well(void)
{
    _exit(3);
}

static void end_by_kill(void)
{
    raise(SIGKILL);
}

static pid_t child(void (*act)(void))
{
    pid_t pid = fork();
    if (pid == 0) {
        act();
        _exit(98);
    }
    return pid;
}

/* Waits until all that were forked since the pipe was made have ended, without reaping. */
static void await_ends(int ends[2])
{
    char byte;
    close(ends[1]);
    if (read(ends[0], &byte, 1) != 0)
        exit(97);
}

static void daemonize(void)
{
    if (fork() == 0) {
        setsid();
        if (fork() == 0)
            crash();
        _exit(0);
    }
}

static void spawn(void)
{
    pid_t pid;
    char *argv[] = {self, "crash", NULL};
    posix_spawn(&pid, self, NULL, NULL, argv, environ);
    waitpid(pid, NULL, 0);
}

static void with_vfork(void)
{
    pid_t pid = vfork();
    if (pid == 0)
        execute();
    waitpid(pid, NULL, 0);
}

static void by_shell(int pipe_to_it)
{
    char command[4096];
    snprintf(command, sizeof command, "'%s' crash; true", self);
    if (!pipe_to_it && system(command) != 0)
        exit(96);
    if (pipe_to_it && pclose(popen(command, "w")) != 0)
        exit(96);
}

static int stop_and_go(void)
{
    int status;
    pid_t pid = fork();
    if (pid == 0) {
        raise(SIGSTOP);
        _exit(6);
    }
    waitpid(pid, &status, WUNTRACED);
    if (!WIFSTOPPED(status))
        return 95;
    kill(pid, SIGCONT);
    waitpid(pid, &status, 0);
    return WEXITSTATUS(status);
}

static int collect(const char *how, pid_t pid)
{
    siginfo_t info;
    struct rusage usage;
    int status = 0;
    if (!strcmp(how, "wait"))
        return wait(NULL) == pid ? 0 : 1;
    if (!strcmp(how, "wait3"))
        return wait3(&status, 0, &usage) == pid && WTERMSIG(status) == SIGABRT ? 0 : 1;
    if (!strcmp(how, "wait4"))
        return wait4(pid, NULL, 0, NULL) == pid ? 0 : 1;
    if (!strcmp(how, "waitid"))
        return waitid(P_PID, (id_t)pid, &info, WEXITED) == 0 && info.si_status == SIGABRT ? 0 : 1;
    return waitpid(pid, &status, 0) == pid && WTERMSIG(status) == SIGABRT ? 0 : 1;
}

int main(int argc, char **argv)
{
    char word[64] = "";
    int ends[2];
    self = argv[0];
    if (argc > 1)
        crash();
    if (!fgets(word, sizeof word, stdin) || pipe2(ends, O_CLOEXEC) < 0)
        return 2;
    word[strcspn(word, "\n")] = 0;
    if (!strncmp(word, "wait", 4))
        return collect(word, child(abort_itself));
    if (!strcmp(word, "fork"))
        waitpid(child(crash), NULL, 0);
    else if (!strcmp(word, "exec"))
        waitpid(child(execute), NULL, 0);
    else if (!strcmp(word, "grandchild"))
        waitpid(child(crash_deeper), NULL, 0);
    else if (!strcmp(word, "thread"))
        waitpid(child(crash_beside), NULL, 0);
    else if (!strcmp(word, "spawn"))
        spawn();
    else if (!strcmp(word, "vfork"))
        with_vfork();
    else if (!strcmp(word, "system") || !strcmp(word, "popen"))
        by_shell(word[0] == 'p');
    else if (!strcmp(word, "daemon"))
        daemonize();
    else if (!strcmp(word, "unreaped"))
        child(crash);
    else if (!strcmp(word, "ignored")) {
        signal(SIGCHLD, SIG_IGN);
        child(crash);
    } else if (!strcmp(word, "well"))
        waitpid(child(end_well), NULL, 0);
    else if (!strcmp(word, "killed"))
        waitpid(child(end_by_kill), NULL, 0);
    else if (!strcmp(word, "stops"))
        return stop_and_go();
    else if (!strcmp(word, "own")) {
        waitpid(child(end_well), NULL, 0);
        abort();
    } else if (!strcmp(word, "spins")) {
        if (fork() == 0)
            for (;;)
                ;
        wait(NULL);
    } else if (!strcmp(word, "later")) {
        if (fork() == 0) {
            usleep(8000);
            crash();
        }
        return 0;
    } else if (!strcmp(word, "leaves") || !strcmp(word, "outlived")) {
        if (!strcmp(word, "outlived"))
            waitpid(child(crash), NULL, 0);
        if (fork() == 0 && setsid() > 0)
            for (;;)
                pause();
    } else
        return 1;
    if (strcmp(word, "leaves") && strcmp(word, "outlived"))
        await_ends(ends);
    return 0;
}
