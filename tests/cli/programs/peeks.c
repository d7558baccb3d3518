/* Ends otherwise where one process makes many runs: it looks for ddfuzz's memory there. */
#include <errno.h>
#include <unistd.h>

int main(void)
{
    char input[16];
    if (read(0, input, sizeof input) < 0)
        return 1;
    int is_there = access((const char *)0x100000080000, F_OK) == 0 || errno != EFAULT;
    return is_there ? 7 : 8;
}
