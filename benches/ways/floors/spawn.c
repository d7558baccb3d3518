/* The spawn floor: runs a program again and again by posix_spawn and waitpid, and nothing else.
 * `spawn RUNS PROGRAM [ARG]...` with the input on stdin; prints the seconds it took. */
#include "input.h"

#include <spawn.h>

extern char **environ;

int main(int argc, char **argv)
{
    if (argc < 3)
        return 2;
    long runs = atol(argv[1]);
    int input = memory_file(), null = open("/dev/null", O_WRONLY | O_CLOEXEC);
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, input, 0);
    posix_spawn_file_actions_adddup2(&actions, null, 1);
    posix_spawn_file_actions_adddup2(&actions, null, 2);
    double began = seconds();
    for (long run = 0; run < runs; run++) {
        pid_t child;
        lseek(input, 0, SEEK_SET);
        if (posix_spawn(&child, argv[2], &actions, NULL, argv + 2, environ) != 0)
            fail(argv[2]);
        await(child);
    }
    printf("%.9f\n", seconds() - began);
    return 0;
}
