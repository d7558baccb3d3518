/* Programs give up by functions of their own; which bug it was, only their callers tell. The first
   byte of the input says which one. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#define NOINLINE __attribute__((noinline))

static volatile int turns;

NOINLINE static void die(const char *format, ...)
{
    va_list list;
    va_start(list, format);
    vfprintf(stderr, format, list);
    va_end(list);
    abort();
}

/* Gives up by giving up. */
NOINLINE static void usage(const char *name)
{
    fputs("usage: ", stderr);
    die("%s FILE\n", name);
}

NOINLINE static int no_name(int c)
{
    if (c)
        die("no name %d\n", c);
    return turns;
}

NOINLINE static int no_number(int c)
{
    if (c)
        die("no number %d\n", c);
    return turns + 1;
}

NOINLINE static int bad_call(int c)
{
    if (c)
        usage("prog");
    return turns + 2;
}

NOINLINE static int worse_call(int c)
{
    if (c)
        usage("other");
    return turns + 3;
}

/* Comes back, if all is well: the abort is its own, wherever it is called. */
NOINLINE static int check(int c)
{
    if (c > 'a')
        abort();
    return c;
}

NOINLINE static int checked(int c) { return check(c) + 1; }

NOINLINE static int checked_too(int c) { return check(c + 1) + 2; }

/* Never returns either, but does a lot before it gives up. */
NOINLINE static void serve(int c)
{
    for (;; turns++) {
        if (turns > 3 && c == 's')
            abort();
        if (turns > 5) {
            puts("too often");
            abort();
        }
        putchar(c);
    }
}

int main(void)
{
    int c = getchar();
    switch (c) {
    case 'n': return no_name(c);
    case 'm': return no_number(c);
    case 'u': return bad_call(c);
    case 'w': return worse_call(c);
    case 'c': return checked(c);
    case 'd': return checked_too(c);
    case 'r':
    case 's': serve(c);
    }
    return 0;
}
