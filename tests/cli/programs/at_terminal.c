/* Dies of a line with an x, at a terminal only. */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

int main(void)
{
    int byte;
    if (!isatty(0))
        return 3;
    while ((byte = getchar()) != EOF)
        if (byte == 'x')
            abort();
    return 0;
}
