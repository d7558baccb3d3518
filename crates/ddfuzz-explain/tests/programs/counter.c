/* Counts the letters of a file in a field that is too narrow. */
#include <stdio.h>

struct counts {
    int lines;
    unsigned char letters;
};

static void count(struct counts *counts, int letter)
{
    if (letter == '\n')
        counts->lines++;
    else
        counts->letters++;
}

static int per_line(const struct counts *counts)
{
    return counts->letters / counts->lines;
}

int main(int argc, char **argv)
{
    struct counts counts = {0, 0};
    FILE *file = fopen(argv[argc - 1], "r");
    for (int letter = getc(file); letter != EOF; letter = getc(file))
        count(&counts, letter);
    printf("%d letters in a line\n", per_line(&counts));
    return 0;
}
