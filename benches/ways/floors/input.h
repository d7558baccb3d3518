/* What the floors share: where a run's input comes from, and where its output goes. */
#ifndef FLOOR_INPUT_H
#define FLOOR_INPUT_H

#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static void fail(const char *what)
{
    perror(what);
    exit(2);
}

/* A memory file with all that stands on our own stdin. */
static int memory_file(void)
{
    char block[4096];
    ssize_t got;
    int file = memfd_create("floor", MFD_CLOEXEC);
    if (file < 0)
        fail("memfd_create");
    while ((got = read(0, block, sizeof block)) > 0)
        if (write(file, block, (size_t)got) != got)
            fail("write");
    return file;
}

static double seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

/* Waits for a run, which must exit as a good one does. */
static void await(pid_t child)
{
    int status;
    if (waitpid(child, &status, 0) != child)
        fail("waitpid");
    if (!WIFEXITED(status)) {
        fprintf(stderr, "a run ended with the status %#x\n", (unsigned)status);
        exit(2);
    }
}

#endif
