/* Frees a block at an offset that the input gives: the bug is that it need not be 0. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void drop(char *text, long skipped)
{
    text += skipped;
    printf("%c\n", *text);
    free(text);
}

int main(void)
{
    char line[64];
    while (fgets(line, sizeof line, stdin)) {
        char *text = malloc(200);
        strcpy(text, line);
        drop(text, line[0] == '+' ? 8 : 0);
    }
    return 0;
}
