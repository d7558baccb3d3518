/* Crashes on inputs with a `k` if it was called with just the odd arguments and variable below. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int is(const char *text, const char *expected)
{
    return text && strcmp(text, expected) == 0;
}

int main(int argc, char **argv)
{
    int byte;
    if (argc != 5 || !is(argv[1], "it's \"$HOME\" `x` \\n") || !is(argv[2], "") || !is(argv[3], "-a\nb*")
        || !is(argv[4], "\xff\xfe"))
        return 2;
    if (!is(getenv("ODD"), "a'b=c\n "))
        return 3;
    while ((byte = getchar()) != EOF)
        if (byte == 'k')
            *(volatile char *)8 = 1;
    return 0;
}
