/* Crashes only when it is called with -x, an argument that holds `depth=9` and the variable MODE
   set to `deep`, on an input with a `!`. Many more options and variables do no harm; with -n it
   refuses, and with -z it has another bug. Its input is the file named last, or stdin for none. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int *volatile nowhere;

__attribute__((noinline)) static void deep_bug(void)
{
    *nowhere = 1;
}

__attribute__((noinline)) static void other_bug(void)
{
    *nowhere = 2;
}

int main(int argc, char **argv)
{
    int x = 0, deep = 0, other = 0, byte, marked = 0;
    FILE *input = stdin;
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "-x") == 0)
            x = 1;
        else if (strstr(argv[i], "depth=9"))
            deep = 1;
        else if (strcmp(argv[i], "-n") == 0)
            return 2;
        else if (strcmp(argv[i], "-z") == 0)
            other = 1;
        else if (argv[i][0] == '/' && !(input = fopen(argv[i], "r")))
            return 3;
    }
    while ((byte = getc(input)) != EOF)
        marked |= byte == '!';
    const char *mode = getenv("MODE");
    if (!marked && !getenv("ALWAYS"))
        return 0;
    if (other && !x)
        other_bug();
    if (x && deep && mode && strcmp(mode, "deep") == 0)
        deep_bug();
    return 0;
}
