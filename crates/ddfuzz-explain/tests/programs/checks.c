/* Fails far from its faults: too many parentheses make it exit with status 3, or, behind an h, write behind a
   block, which the next allocation notices. */
#include <stdio.h>
#include <stdlib.h>

static void check(int depth)
{
    if (depth > 3) {
        fputs("too deep\n", stderr);
        exit(3);
    }
}

static char *filled(int length)
{
    char *block = malloc(24);
    for (int i = 0; i < length; i++)
        block[i] = 'x';
    return block;
}

int main(void)
{
    char line[64];
    int depth = 0;

    setvbuf(stdout, NULL, _IOLBF, 256);
    if (!fgets(line, sizeof line, stdin))
        return 2;
    for (int i = 0; line[i]; i++)
        depth += line[i] == '(';
    puts(line);
    if (line[0] == 'h') {
        char *block = filled(depth * 10);
        char *other = malloc(2000);
        printf("%c%d\n", block[0], other != NULL);
    } else {
        check(depth);
    }
    return 0;
}
