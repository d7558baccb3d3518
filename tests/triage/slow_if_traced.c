/* Sleeps for ever in short steps if it is traced, and fails otherwise. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static int *volatile nowhere;

int main(void)
{
    char line[256];
    FILE *status = fopen("/proc/self/status", "r");
    while (status && fgets(line, sizeof line, status))
        while (!strncmp(line, "TracerPid:", 10) && strcmp(line, "TracerPid:\t0\n"))
            usleep(1000);
    *nowhere = 1;
    return 0;
}
