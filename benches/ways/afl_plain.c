/* A small program to measure fork servers with: `afl-clang-fast -O2 afl_plain.c` runs each input
 * of stdin in a process of its own. It neither crashes nor hangs. */
#include <unistd.h>

int main(void)
{
    unsigned char bytes[4096];
    long length = read(0, bytes, sizeof bytes);
    int depth = 0;
    for (long i = 0; i < length; i++) {
        if (bytes[i] == '(')
            depth++;
        else if (bytes[i] == ')' && depth > 0)
            depth--;
        else if (bytes[i] > 0x7f)
            depth ^= 1;
    }
    return depth & 1;
}
