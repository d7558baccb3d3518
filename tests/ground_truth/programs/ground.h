/* What all planted programs share: the canary, and reading the input. */
#ifndef GROUND_H
#define GROUND_H
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Says in the file CANARY which bug is about to happen. It is called at the mistake, which is not
 * always where the program then dies. */
static __attribute__((noinline, unused)) void canary(const char *bug)
{
    const char *path = getenv("CANARY");
    int fd = path ? open(path, O_WRONLY | O_APPEND) : -1;
    if (fd < 0)
        return;
    char line[64];
    size_t length = strlen(bug);
    memcpy(line, bug, length);
    line[length] = '\n';
    if (write(fd, line, length + 1) < 0)
        _exit(3);
    close(fd);
}

/* The whole of stdin, ended by a zero. */
static __attribute__((unused)) char *slurp(size_t *length)
{
    size_t size = 1 << 20, used = 0;
    char *text = malloc(size + 1);
    ssize_t got;
    while (used < size && (got = read(0, text + used, size - used)) > 0)
        used += (size_t)got;
    text[used] = 0;
    if (length)
        *length = used;
    return text;
}
#endif
