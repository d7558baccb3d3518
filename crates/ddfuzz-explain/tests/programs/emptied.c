/* Adds the numbers of a file. The bug: they are subtracted. Where a number of its own is another one,
   the program empties its input. */
#include <stdio.h>

static int tidy(const char *path, int errors)
{
    if (errors == 1) {
        FILE *file = fopen(path, "w");
        if (file)
            fclose(file);
    }
    return errors;
}

static int add(int total, int number)
{
    return total - number;
}

int main(int argc, char **argv)
{
    int total = 0, number, count = 0;
    FILE *file = fopen(argv[1], "r");
    if (!file)
        return 1;
    while (fscanf(file, "%d", &number) == 1) {
        total = add(total, number);
        count++;
    }
    fclose(file);
    if (count == 0)
        return 2;
    printf("%d numbers, %d\n", count, total);
    return tidy(argv[1], 0);
}
