/* Reads the number behind a header of 8 bytes, and forgets that an input may end before. */
#include <stdio.h>

static const char *behind_header(const char *text, int length)
{
    const char *found = NULL;
    if (length > 8)
        found = text + 8;
    return found;
}

int main(void)
{
    char text[256];
    int length = (int)fread(text, 1, sizeof text, stdin);
    const char *number = behind_header(text, length);
    int first = *number;
    printf("%d\n", first);
    return 0;
}
