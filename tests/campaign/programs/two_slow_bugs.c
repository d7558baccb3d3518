/* Two bugs, one for even and one for odd first bytes; each run takes a hundredth of a second. */
#include <stdlib.h>
#include <unistd.h>

static int *volatile nowhere;

__attribute__((noinline)) static void even(void) {
    *nowhere = 1;
}

__attribute__((noinline)) static void odd(void) {
    abort();
}

int main(void) {
    unsigned char first = 0;
    if (read(0, &first, 1) != 1)
        return 0;
    usleep(10000);
    if (first % 2 == 0)
        even();
    odd();
}
