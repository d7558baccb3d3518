/* Reads the two files that its arguments name, and ends with sixteen times the length of the first
 * plus the length of the second, which it also copies to stdout. */
#include <stdio.h>

static int copy(const char *path)
{
    FILE *file = fopen(path, "r");
    int length = 0, byte;
    while (file && (byte = getc(file)) != EOF) {
        putchar(byte);
        length++;
    }
    if (file)
        fclose(file);
    return length;
}

int main(int argc, char **argv)
{
    return argc == 3 ? 16 * copy(argv[1]) + copy(argv[2]) : 255;
}
