/* A program that behaves as the first byte of its input says, and reads the rest of it:
 *
 *   b   byte by byte               l r   byte by byte, from one of two places
 *   p   writes its process id      t     writes the time in seconds
 *   a   writes an address          o     writes the rest to its standard output
 *   e   writes it to its standard error
 *   h   hangs                      c     crashes                  m     takes all memory
 *   f   crashes only where the file that is named by its first argument is there
 *   s   reads three bytes and ends x     exits with the status of the next digit */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static volatile int taken;

/* Not inlined, and no tail call: each has a frame of its own. */
__attribute__((noinline)) static int next(void)
{
    unsigned char byte;
    int got = read(STDIN_FILENO, &byte, 1) == 1 ? byte : -1;
    taken++;
    return got;
}

__attribute__((noinline)) static void from_left(void)
{
    while (next() >= 0)
        taken += 2;
}

__attribute__((noinline)) static void from_right(void)
{
    while (next() >= 0)
        taken += 3;
}

static void copy_to(FILE *out)
{
    for (int byte; (byte = next()) >= 0;)
        putc(byte, out);
}

static void misbehave(int how, const char *file)
{
    if (how == 'h')
        for (;;)
            taken++;
    if (how == 'm')
        for (;;)
            memset(malloc(1 << 20), 1, 1 << 20);
    if (how == 'c' || (file && access(file, F_OK) == 0))
        *(volatile int *)0 = 1;
}

int main(int argc, char **argv)
{
    int how = next();
    switch (how) {
    case 'p':
        printf("%d\n", (int)getpid());
        break;
    case 't':
        printf("%ld\n", (long)time(NULL));
        break;
    case 'a':
        printf("%p\n", (void *)main);
        break;
    case 'o':
        copy_to(stdout);
        break;
    case 'e':
        copy_to(stderr);
        break;
    case 'l':
        from_left();
        break;
    case 'x':
        return next() - '0';
    case 's':
        next();
        next();
        return 0;
    case 'h':
    case 'm':
    case 'c':
    case 'f':
        misbehave(how, argc > 1 ? argv[1] : NULL);
        break;
    }
    from_right();
    return 0;
}
