/* Sweeps a family away, with the sources of the runtime. */
#define _GNU_SOURCE
#include <errno.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "sweep.c"

int main(void)
{
    int ready[2];
    char byte;
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    if (pipe(ready) < 0)
        return 1;
    for (int i = 0; i < 5; i++)
        if (fork() == 0) {
            setsid();
            if (fork() == 0)
                setsid();
            if (write(ready[1], "x", 1) < 0)
                _exit(1);
            for (;;)
                pause();
        }
    for (int i = 0; i < 10; i++)
        if (read(ready[0], &byte, 1) != 1)
            return 2;
    alarm(20);
    sweep_descendants();
    return waitpid(-1, NULL, WNOHANG) < 0 && errno == ECHILD ? 0 : 3;
}
