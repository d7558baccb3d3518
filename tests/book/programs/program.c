// A program with two bugs, as the pages of the book run it: it reads a file, or stdin.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int *volatile nowhere;

static __attribute__((noinline)) void shout(void) { *nowhere = 1; }

static __attribute__((noinline)) void fall(void) { *nowhere = 2; }

int main(int argc, char **argv)
{
    static char text[1 << 20];
    FILE *file = stdin;
    for (int at = 1; at < argc; at++)
        if (argv[at][0] != '-' && !(file = fopen(argv[at], "rb")))
            return 2;
    size_t size = fread(text, 1, sizeof text - 1, file);
    if (memchr(text, '!', size))
        shout();
    if (size >= 3 && memmem(text, size, "bug", 3))
        fall();
    puts("well");
    return 0;
}
