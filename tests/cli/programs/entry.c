/* A target of a user's own, as the book's page on writing targets shows it: the entry, and a main
 * that calls it on stdin or on a file. It dies of the word BUG at the beginning. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int target_main(const uint8_t *data, size_t size)
{
    if (size >= 3 && memcmp(data, "BUG", 3) == 0)
        abort();
    return size == 0;
}

int main(int argc, char **argv)
{
    FILE *file = argc > 1 ? fopen(argv[1], "rb") : stdin;
    static uint8_t data[1 << 20];
    if (!file)
        return 2;
    return target_main(data, fread(data, 1, sizeof data, file));
}
