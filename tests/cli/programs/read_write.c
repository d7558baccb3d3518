/* Opens its input file for reading and writing, as its owner, and spoils it: the next run must find
 * nothing of that. Dies of SIGABRT where the input begins with k, and of SIGILL where it is not
 * whole. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define SPOILED "spoiled by an earlier run"

int main(int argc, char **argv)
{
    char text[4096] = "";
    struct stat facts;
    FILE *file = argc == 2 ? fopen(argv[1], "r+") : NULL;
    if (!file || fstat(fileno(file), &facts) < 0 || facts.st_uid != geteuid())
        return 2;
    size_t length = fread(text, 1, sizeof text - 1, file);
    for (size_t at = 0; at + sizeof SPOILED - 1 <= length; at++)
        if (memcmp(text + at, SPOILED, sizeof SPOILED - 1) == 0)
            __builtin_trap();
    rewind(file);
    fputs(SPOILED, file);
    fseek(file, 0, SEEK_END);
    fputs(SPOILED, file);
    fflush(file);
    if (text[0] == 'k')
        abort();
    return 0;
}
