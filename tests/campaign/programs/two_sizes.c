/* One bug, shown by inputs of two sizes: deleting a few bytes does not lead from the large ones to
 * the small ones. A short text that begins with k shows it as well, unless there is a z in it: that
 * is another bug. */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int *volatile nowhere;

__attribute__((noinline)) static void of_size(void) {
    *nowhere = 1;
}

__attribute__((noinline)) static void of_letters(void) {
    abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    int begins = size > 0 && data[0] == 'k';
    if (size >= 4000 || (size >= 1000 && size <= 1100))
        of_size();
    else if (begins && memchr(data, 'z', size))
        of_letters();
    else if (begins && size <= 20)
        of_size();
    return 0;
}

#ifndef HARNESS
static uint8_t input[1 << 16];

int main(void) {
    size_t size = 0;
    ssize_t got;
    while ((got = read(0, input + size, sizeof input - size)) > 0)
        size += (size_t)got;
    return LLVMFuzzerTestOneInput(input, size);
}
#endif
