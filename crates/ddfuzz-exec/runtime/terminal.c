#define _GNU_SOURCE
#include "terminal.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "protocol.h"

int terminal_is_there(void)
{
    return fcntl(FD_TERMINAL, F_GETFD) >= 0;
}

void terminal_lead(void)
{
    if (terminal_is_there())
        setsid();
    else
        setpgid(0, 0);
}

int terminal_take(void)
{
    if (ioctl(FD_TERMINAL, TIOCSCTTY, 0) < 0)
        return errno;
    for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
        if (dup2(FD_TERMINAL, fd) < 0)
            return errno;
    close(FD_TERMINAL);
    return 0;
}
