/* Dies of SIGABRT where its file begins with k, but refuses files whose names do not end in .asm. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int main(int argc, char **argv)
{
    const char *ending = argc == 2 ? strrchr(argv[1], '.') : NULL;
    if (!ending || strcmp(ending, ".asm") != 0) {
        fprintf(stderr, "reading\n\tnot an .asm file\n\n");
        return 1;
    }
    FILE *file = fopen(argv[1], "r");
    if (file && fgetc(file) == 'k')
        abort();
    return 0;
}
