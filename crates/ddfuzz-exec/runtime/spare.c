#define _GNU_SOURCE
#include "spare.h"

#include <fcntl.h>
#include <unistd.h>

#include "protocol.h"
#include "serve.h"

static int prepared;

/* Whether the program does not use this descriptor. */
static int is_free(int fd)
{
    return fcntl(fd, F_GETFD) < 0;
}

int spare_prepare(void)
{
    int ends[2];
    if (!is_free(FD_TURN) || !is_free(FD_GIVE_TURN) || pipe2(ends, O_CLOEXEC) < 0)
        return 0;
    dup3(ends[0], FD_TURN, O_CLOEXEC);
    dup3(ends[1], FD_GIVE_TURN, O_CLOEXEC);
    close(ends[0]);
    close(ends[1]);
    prepared = 1;
    return 1;
}

void spare_await_turn(void)
{
    char turn;
    close(FD_GIVE_TURN);
    if (!read_whole(FD_TURN, &turn, 1))
        _exit(0);
    close(FD_TURN);
}

int spare_begin(void)
{
    /* This process has a read end, too, so that writing raises no SIGPIPE. */
    return write(FD_GIVE_TURN, "", 1) == 1;
}

void spare_dismiss(void)
{
    if (!prepared)
        return;
    prepared = 0;
    close(FD_TURN);
    close(FD_GIVE_TURN);
}
