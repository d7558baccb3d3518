/* Reads bytes of a block that nothing has set: they are those of another block, which was at that place until
   it was moved. No pointer to that one is kept. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int main(void)
{
    char line[8] = {0};
    if (read(0, line, 7) < 1)
        return 2;
    char *small = malloc(24), *first = malloc(24);
    char *large = malloc(2000), *second = malloc(24);
    memset(large, line[0] == 'X', 2000);
    large = realloc(large, 9000);
    small = realloc(small, 1900);
    if (small[500])
        abort();
    return first == second || large == small;
}
