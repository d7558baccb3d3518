/* Three bugs that a few bytes anywhere in the input bring about; with RARE, only before some
 * letters. */
#include <stdio.h>
#include <stdlib.h>

static char text[4096];
static volatile int zero;
static int *volatile nowhere;

__attribute__((noinline)) static void opened(void) {
    *nowhere = 1;
}

__attribute__((noinline)) static void repeated(void) {
    abort();
}

__attribute__((noinline)) static int divided(void) {
    return 7 / zero;
}

static int follows(size_t at, size_t length) {
#ifdef RARE
    return at + 1 < length && text[at + 1] >= 'a' && text[at + 1] <= 'b';
#else
    return at < length;
#endif
}

int main(void) {
    size_t length = fread(text, 1, sizeof text, stdin);
    for (size_t at = 0; at < length; at++) {
        if (text[at] == '<' && follows(at, length))
            opened();
        if (at > 0 && text[at] == '#' && text[at - 1] == '#' && follows(at, length))
            repeated();
        if (text[at] == '{' && length > 20 && follows(at, length))
            zero = divided();
    }
    return 0;
}
