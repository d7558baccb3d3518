/* Dies of a write to nowhere unless one of its words is the remedy, and differently where there is
   a poison, so that the poison is another bug. */
#include <stdio.h>
#include <string.h>

/* Unknown to the compiler, which would take the bugs away. */
static int *volatile nowhere;

__attribute__((noinline)) static void poisoned(void)
{
    *nowhere = 1;
}

__attribute__((noinline)) static void untreated(void)
{
    *nowhere = 2;
}

int main(void)
{
    static char input[1 << 16];
    size_t length = fread(input, 1, sizeof input - 1, stdin);
    input[length] = 0;
    if (strstr(input, "poison"))
        poisoned();
    if (!strstr(input, "-ffast-math"))
        untreated();
    return 0;
}
