/* Reads words, and passes other places for some of them; as a libFuzzer harness and as a program.
 * The first call in a process builds a table, as many libraries do. */
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static unsigned char kinds[256];
static int ready;
static volatile unsigned seen, calls;

static void prepare(void)
{
    for (int c = '0'; c <= '9'; c++)
        kinds[c] = 1;
    for (int c = 'a'; c <= 'z'; c++)
        kinds[c] = 2;
    ready = 1;
}

static int is_word(const uint8_t *at, size_t left, const char *word)
{
    size_t i = 0;
    while (word[i] && i < left && at[i] == (uint8_t)word[i])
        i++;
    return !word[i];
}

static void read_one(const uint8_t *at, size_t left)
{
    if (*at == '(')
        seen |= 1;
    else if (kinds[*at] == 1)
        seen |= 2;
    if (is_word(at, left, "key"))
        seen |= 4;
    if (is_word(at, left, "lock"))
        seen |= 8;
    if (is_word(at, left, "!!"))
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (!ready)
        prepare();
    seen = 0;
    calls++;
    if (size && *data == '~' && calls % 2)
        seen |= 16; /* in every other call */
    if (size && *data == '^' && calls > 2)
        _exit(7); /* not in a process of its own */
    for (size_t i = 0; i < size; i++)
        read_one(data + i, size - i);
    return 0;
}

#ifdef WITH_LOOP
__AFL_FUZZ_INIT();

int main(void)
{
    __AFL_INIT();
    unsigned char *input = __AFL_FUZZ_TESTCASE_BUF;
    while (__AFL_LOOP(1000))
        LLVMFuzzerTestOneInput(input, (size_t)__AFL_FUZZ_TESTCASE_LEN);
    return 0;
}
#endif

#ifdef WITH_MAIN
int main(void)
{
    static uint8_t input[4096];
    size_t size = fread(input, 1, sizeof input, stdin);
    return LLVMFuzzerTestOneInput(input, size);
}
#endif
