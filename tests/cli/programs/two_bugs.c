/* Dies of the letter k in one of two ways: which one depends on whether the input's length is
   even, so that half of all single removals lead from one bug into the other. */
#include <stdio.h>
#include <string.h>

/* Unknown to the compiler, which would take the bugs away. */
static int *volatile nowhere;

__attribute__((noinline)) static void even_bug(void)
{
    *nowhere = 1;
}

__attribute__((noinline)) static void odd_bug(void)
{
    *nowhere = 2;
}

int main(void)
{
    static char input[1 << 16];
    size_t length = fread(input, 1, sizeof input, stdin);
    if (!memchr(input, 'k', length))
        return 0;
    if (length % 2)
        odd_bug();
    else
        even_bug();
    return 0;
}
