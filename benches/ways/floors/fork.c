/* The fork floor: the target is linked in, its `main` under another name, and each run is a fork
 * that calls it. `fork RUNS` with the input on stdin; prints the seconds it took. */
#include "input.h"

int floor_target(int argc, char **argv);

int main(int argc, char **argv)
{
    if (argc < 2)
        return 2;
    long runs = atol(argv[1]);
    char *target_argv[] = {argv[0], NULL};
    int input = memory_file(), out = dup(1), null = open("/dev/null", O_WRONLY);
    if (dup2(input, 0) < 0 || dup2(null, 1) < 0 || dup2(null, 2) < 0)
        fail("dup2");
    double began = seconds();
    for (long run = 0; run < runs; run++) {
        lseek(0, 0, SEEK_SET);
        pid_t child = fork();
        if (child < 0)
            fail("fork");
        if (child == 0)
            exit(floor_target(1, target_argv));
        await(child);
    }
    dprintf(out, "%.9f\n", seconds() - began);
    return 0;
}
