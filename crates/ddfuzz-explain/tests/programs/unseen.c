/* A quotient that is written to stderr only: other numbers give other quotients. */
#include <stdio.h>
#include <stdlib.h>

static int scale(int number)
{
    int by = number - 45;
    return 9000 / by;
}

int main(void)
{
    char line[16];
    fprintf(stderr, "%d\n", scale(fgets(line, sizeof line, stdin) ? atoi(line) : 0));
    return 0;
}
