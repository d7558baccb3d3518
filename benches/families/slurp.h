/* The whole input of a program: a file, or stdin. */
#ifndef DDFUZZ_BENCH_SLURP_H
#define DDFUZZ_BENCH_SLURP_H

#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

/* Reads all of `path`, or of stdin where it is null; null where that cannot be done. */
static uint8_t *slurp(const char *path, size_t *size) {
    int file = path ? open(path, O_RDONLY | O_CLOEXEC) : 0;
    struct stat about;
    if (file < 0 || fstat(file, &about) != 0) {
        return NULL;
    }
    size_t room = S_ISREG(about.st_mode) ? (size_t)about.st_size + 1 : 1 << 16, length = 0;
    uint8_t *data = malloc(room);
    while (data) {
        ssize_t got = read(file, data + length, room - length);
        if (got <= 0) {
            break;
        }
        length += (size_t)got;
        if (length == room) {
            room *= 2;
            uint8_t *more = realloc(data, room);
            if (!more) {
                free(data);
            }
            data = more;
        }
    }
    if (path) {
        close(file);
    }
    *size = length;
    return data;
}

/* Appends one byte to the file that BENCH_CALLS names: one call of the oracle. */
static void count_call(void) {
    const char *path = getenv("BENCH_CALLS");
    if (!path) {
        return;
    }
    int file = open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0644);
    if (file < 0 || write(file, ".", 1) != 1) {
        _exit(99);
    }
    close(file);
}

#endif
