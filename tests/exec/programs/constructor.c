/* Does before its main function what the variable CONSTRUCTOR asks for. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

static int is(const char *word)
{
    const char *asked = getenv("CONSTRUCTOR");
    return asked && !strcmp(asked, word);
}

static void on_child(int number)
{
    (void)number;
}

static void close_from(int first, int last)
{
    for (int fd = first; fd <= last; fd++)
        close(fd);
}

static void say(const char *text, size_t length)
{
    if (write(191, text, length) < 0)
        _exit(9);
    sleep(60);
}

__attribute__((constructor)) static void before_main(int argc, char **argv)
{
    static char nonsense[24] = "this is not the protocol";
    (void)argc;
    if (is("closes-all"))
        close_from(3, 1023);
    else if (is("closes-input"))
        close(192);
    else if (is("leaves-child") && fork() == 0)
        for (;;)
            pause();
    else if (is("daemonizes") && daemon(1, 1) < 0)
        _exit(9);
    else if (is("starts-program") && system("cat </dev/null >/dev/null") != 0)
        _exit(9);
    else if (is("executes-itself") && setenv("CONSTRUCTOR", "", 1) == 0)
        execv(argv[0], argv);
    else if (is("nonsense"))
        say(nonsense, sizeof nonsense);
    else if (is("half-a-hello"))
        say("uf", 2);
    else if (is("dies"))
        abort();
    else if (is("is-silent"))
        sleep(600);
    else if (is("ignores-children"))
        signal(SIGCHLD, SIG_IGN);
    else if (is("handles-children"))
        signal(SIGCHLD, on_child);
    else if (is("leaves-session"))
        setsid();
    else if (is("kills-group"))
        kill(0, SIGKILL);
    else if (is("has-no-death-signal"))
        prctl(PR_SET_PDEATHSIG, 0);
    else if (is("is-undumpable"))
        prctl(PR_SET_DUMPABLE, 0);
    else if (is("limits-itself")) {
        struct rlimit limit = {16, 16};
        setrlimit(RLIMIT_NOFILE, &limit);
        setrlimit(RLIMIT_CORE, &limit);
    } else if (is("blocks-signals")) {
        sigset_t all;
        sigfillset(&all);
        sigprocmask(SIG_SETMASK, &all, NULL);
    }
}

int main(void)
{
    char word[64] = "";
    struct sigaction action;
    if (!fgets(word, sizeof word, stdin))
        return 3;
    word[strcspn(word, "\n")] = 0;
    if (!strcmp(word, "crash"))
        *(volatile int *)0 = 1;
    if (!strcmp(word, "on-child")) {
        sigaction(SIGCHLD, NULL, &action);
        return action.sa_handler == SIG_IGN ? 20 : action.sa_handler == SIG_DFL ? 21 : 22;
    }
    return 7;
}
