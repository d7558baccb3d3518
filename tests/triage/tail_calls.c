/* Functions whose last deed is a call leave no frame. The first byte of the input says how the
   program dies. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NOINLINE __attribute__((noinline))

static char fixed[64];
static void (*volatile hook)(void);
static volatile int turns;

NOINLINE static void release(char *p)
{
    turns++;
    free(p + 8);
}

NOINLINE static void fire(int c)
{
    turns++;
    (void)c;
    hook();
}

NOINLINE static void one(char *p)
{
    release(p);
    turns++;
}

NOINLINE static void two(char *p)
{
    release(p);
    turns += 2;
}

NOINLINE static void early(int c)
{
    fire(c);
    turns++;
}

NOINLINE static void late(int c)
{
    fire(c);
    turns += 2;
}

int main(void)
{
    int c = getchar();
    switch (c) {
    case '1': one(fixed); break;
    case '2': two(fixed); break;
    case 'e': early(c); break;
    case 'l': late(c); break;
    case 'n': hook = (void (*)(void))0x4141414141414141; late(c); break;
    }
    return 0;
}
