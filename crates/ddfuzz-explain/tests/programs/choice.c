/* Reads the mode from one of two files, chosen by the first character of the input, and fails by it. With a
   third argument, a signal that the program handles comes first. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

static char mode[16];
static volatile int traps;

static void trapped(int signal)
{
    traps += signal;
}

int main(int count, char **arguments)
{
    char line[16];
    signal(SIGTRAP, trapped);
    if (count > 3)
        raise(SIGTRAP);
    if (count < 3 || !fgets(line, sizeof line, stdin))
        return 2;
    FILE *file = fopen(line[0] == 'X' ? arguments[1] : arguments[2], "r");
    if (!file || !fgets(mode, sizeof mode, file))
        return 1;
    fclose(file);
    if (mode[0] == 'b')
        abort();
    return 0;
}
