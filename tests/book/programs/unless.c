// A program that crashes unless the option `s` (for safe) is in its input.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int main(void)
{
    static char text[1 << 16];
    size_t size = fread(text, 1, sizeof text, stdin);
    if (!memchr(text, 's', size))
        abort();
    return 0;
}
