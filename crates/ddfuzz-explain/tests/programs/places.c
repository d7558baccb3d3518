/* Bad pointers: "n" to no address of a process, "d" to nothing 250 calls deep. */
#include <stdio.h>
#include <string.h>

static union {
    char *text;
    long number;
} it;

static int down(int depth, int kind)
{
    int own = depth;
    if (depth == 0)
        return it.text[0];
    return down(depth - 1, kind) + (own > 0);
}

int main(void)
{
    int kind = getchar();
    int bad = getchar();
    it.text = "x";
    if (bad == 'b')
        it.number = kind == 'n' ? -34 : 0;
    if (kind == 'n')
        printf("%zu\n", strlen(it.text));
    else
        printf("%d\n", down(250, kind));
    return 0;
}
