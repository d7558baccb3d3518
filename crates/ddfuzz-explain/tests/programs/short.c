/* Fills a table of the height and width that each line gives, and prints its sum. The size of the
 * table is computed from the height alone. */
#include <stdio.h>
#include <stdlib.h>

static int cells(int height, int width)
{
    (void)width;
    return height * height;
}

static long *new_table(int count)
{
    long *table = malloc(count * sizeof *table);
    return table;
}

static long sum(int height, int width)
{
    long *table = new_table(cells(height, width)), *other = new_table(4), all = 0;
    for (int i = 0; i < height * width; i++)
        table[i] = i + 1;
    for (int i = 0; i < height * width; i++)
        all += table[i];
    free(other);
    free(table);
    return all;
}

int main(void)
{
    char line[64];
    while (fgets(line, sizeof line, stdin)) {
        char *end;
        int height = strtol(line, &end, 10);
        int width = strtol(end, NULL, 10);
        printf("%ld\n", sum(height, width));
    }
    return 0;
}
