/* Hides its memory from tracers of its own user, and crashes. */
#include <stdlib.h>
#include <sys/prctl.h>

static char *volatile nowhere;

__attribute__((noinline)) static void dies(void)
{
    *nowhere = 1;
}

int main(void)
{
    prctl(PR_SET_DUMPABLE, 0);
    dies();
    return 0;
}
