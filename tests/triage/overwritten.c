/* Functions whose return address is overwritten, each in its own way: the first byte on stdin says
 * which, the others are what is written. */
#include <string.h>
#include <unistd.h>

#define NOINLINE __attribute__((noinline, noclone))

static char input[256];
static volatile long sink;

/* A function that calls nothing leaves no return address below its stack pointer. */
NOINLINE static void fills(long count)
{
    char buffer[16];
    for (long i = 0; i < count; i++) {
        buffer[i] = input[i];
        __asm__ volatile("" ::"r"(buffer) : "memory");
    }
    sink += buffer[3];
}

NOINLINE static void copies(char *to, long count)
{
    for (long i = 0; i < count; i++) {
        to[i] = input[i];
        __asm__ volatile("" ::: "memory");
    }
}

/* The one that writes is not the one whose stack it is. */
NOINLINE static void lends(long count)
{
    char buffer[16];
    copies(buffer, count);
    sink += buffer[3];
}

/* The kernel writes. */
NOINLINE static void reads(void)
{
    char buffer[16];
    sink += read(0, buffer, sizeof input);
    sink += buffer[3];
}

NOINLINE static long calls(char way)
{
    if (way == 'k') {
        reads();
        return sink;
    }
    long count = read(0, input, sizeof input);
    if (way == 'l')
        lends(count);
    else
        fills(count);
    return sink;
}

int main(void)
{
    char way;
    if (read(0, &way, 1) != 1)
        return 0;
    return calls(way) == 77;
}
