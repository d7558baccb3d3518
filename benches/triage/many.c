/* A program of twenty bugs: the first byte says which one an input sets off, and the rest how it
 * comes there. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static char input[1 << 16];
static volatile long seen;
static long *volatile missing;

#define BUG(n)                                                                                  \
    static __attribute__((noinline)) void fail_##n(long by)                                     \
    {                                                                                           \
        seen += by * n;                                                                         \
        if (n % 4 == 0)                                                                         \
            abort();                                                                            \
        seen = n % 4 == 1 ? seen / (long)missing : missing[n] + by;                             \
        seen++;                                                                                 \
    }                                                                                           \
    static __attribute__((noinline)) void one_##n(long by) { fail_##n(by + 1); seen++; }        \
    static __attribute__((noinline)) void two_##n(long by) { fail_##n(by - 1); seen--; }        \
    static void parse_##n(const char *text)                                                     \
    {                                                                                           \
        if (strchr(text, '#'))                                                                  \
            one_##n(text[1]);                                                                   \
        else                                                                                    \
            two_##n(text[2]);                                                                   \
        seen++;                                                                                 \
    }

BUG(0) BUG(1) BUG(2) BUG(3) BUG(4) BUG(5) BUG(6) BUG(7) BUG(8) BUG(9)
BUG(10) BUG(11) BUG(12) BUG(13) BUG(14) BUG(15) BUG(16) BUG(17) BUG(18) BUG(19)

static void (*const parsers[])(const char *) = {
    parse_0,  parse_1,  parse_2,  parse_3,  parse_4,  parse_5,  parse_6,  parse_7,  parse_8,  parse_9,
    parse_10, parse_11, parse_12, parse_13, parse_14, parse_15, parse_16, parse_17, parse_18, parse_19,
};

int main(void)
{
    size_t length = fread(input, 1, sizeof input - 1, stdin);
    unsigned which = (unsigned char)input[0] - 'a';
    if (length > 2 && which < 20)
        parsers[which](input);
    return 0;
}
