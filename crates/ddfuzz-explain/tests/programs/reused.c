/* Frees a block too early where the input says so: the next allocation gets it, and it is freed with
   the old pointer, too. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void fill(char *text, const char *line)
{
    strcpy(text, line);
    text[0] = '#';
}

int main(void)
{
    char line[24];
    if (!fgets(line, sizeof line, stdin))
        return 0;
    char *old = malloc(24);
    fill(old, line);
    puts(old);
    if (line[0] == 'f')
        free(old);
    char *next = malloc(24);
    fill(next, line);
    puts(next);
    free(old);
    free(next);
    return 0;
}
