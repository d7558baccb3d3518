/* A harness of libFuzzer: a parser of a few lines, with a bug that needs eight bytes. */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#ifdef PLANTED
#define FAIL() abort()
#else
#define FAIL() (void)0
#endif

/* Else a compiler leaves out all of a parser that has no bug. */
volatile size_t small_parser_found;

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    size_t depth = 0, deepest = 0, letters = 0;
    for (size_t i = 0; i < size; i++) {
        if (data[i] == '(')
            depth++;
        else if (data[i] == ')' && depth)
            depth--;
        else if (data[i] >= 'a' && data[i] <= 'z')
            letters++;
        if (depth > deepest)
            deepest = depth;
    }
    if (deepest >= 4 && letters >= 3 && size && data[size - 1] == '!')
        FAIL();
    small_parser_found = deepest + letters;
    return 0;
}
