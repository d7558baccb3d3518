/* A family as an interestingness test, for reducers that run one: exit status 0 where the input
 * crashes by the wanted bug, 1 where not.
 *
 *   judge [FILE]             the file, else stdin; BENCH_BUG names the wanted bug (any, if unset)
 *   judge --deletions FILE   tries every distinct deletion of one byte; prints how many there are
 *                            and the place of the first that still crashes so, or -1
 *
 * BENCH_CALLS names a file that one byte is appended to a call, BENCH_BEST one that keeps the
 * smallest input that was interesting: what a reducer that is ended by force came to. */
#define _GNU_SOURCE
#include "family.h"
#include "slurp.h"
#include <signal.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>

enum { NAME = 64 };
static char *announced; /* shared with the child */

void announce(const char *bug) { strncpy(announced, bug, NAME - 1); }

/* Whether the input crashes by the wanted bug. */
static int is_interesting(const uint8_t *data, size_t size) {
    const char *wanted = getenv("BENCH_BUG");
    memset(announced, 0, NAME);
    pid_t child = fork();
    if (child == 0) {
        /* Allocated anew at its exact size, as a reader of files would have it. */
        uint8_t *copy = malloc(size ? size : 1);
        memcpy(copy, data, size);
        _exit(family(copy, size));
    }
    int status;
    if (child < 0 || waitpid(child, &status, 0) != child) {
        _exit(99);
    }
    return WIFSIGNALED(status) && (!wanted || strcmp(wanted, announced) == 0);
}

/* Keeps the input where it is smaller than what is kept. */
static void keep_best(const uint8_t *data, size_t size) {
    const char *path = getenv("BENCH_BEST");
    struct stat about;
    if (!path || (stat(path, &about) == 0 && (size_t)about.st_size <= size)) {
        return;
    }
    char fresh[4096];
    snprintf(fresh, sizeof fresh, "%s.%d", path, (int)getpid());
    FILE *file = fopen(fresh, "wb");
    if (!file || fwrite(data, 1, size, file) != size || fclose(file) != 0) {
        _exit(99);
    }
    rename(fresh, path);
}

static int try_deletions(const uint8_t *data, size_t size) {
    uint8_t *shorter = malloc(size + 1);
    long distinct = 0, removable = -1;
    for (size_t at = 0; at < size && removable < 0; at++) {
        if (at > 0 && data[at] == data[at - 1]) {
            continue;
        }
        memcpy(shorter, data, at);
        memcpy(shorter + at, data + at + 1, size - at - 1);
        distinct++;
        if (is_interesting(shorter, size - 1)) {
            removable = (long)at;
        }
    }
    printf("%ld %ld\n", distinct, removable);
    return 0;
}

int main(int argc, char **argv) {
    /* 1, not 0: a handler of core dumps would be started for 0. */
    struct rlimit limit = {1, 1};
    setrlimit(RLIMIT_CORE, &limit);
    announced = mmap(NULL, NAME, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    int deletions = argc > 2 && strcmp(argv[1], "--deletions") == 0;
    const char *path = deletions ? argv[2] : argc > 1 ? argv[1] : NULL;
    size_t size;
    if (!deletions) {
        count_call();
    }
    uint8_t *data = slurp(path, &size);
    if (!data || announced == MAP_FAILED) {
        return 99;
    }
    if (deletions) {
        return try_deletions(data, size);
    }
    if (!is_interesting(data, size)) {
        return 1;
    }
    keep_best(data, size);
    return 0;
}
