/* About the least that a program can do with its input: reads it, and looks at one byte of it. */
#include <unistd.h>

int main(void)
{
    char buffer[4096];
    ssize_t got = read(0, buffer, sizeof buffer);
    return got > 0 && buffer[0] == '!';
}
