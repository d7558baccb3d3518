/* A target of fuzzers as a program that reads one input on its stdin. */
#include <stdint.h>
#include <stdlib.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int main(void)
{
    static uint8_t input[1 << 20];
    size_t used = 0;
    ssize_t got;
    while (used < sizeof input && (got = read(0, input + used, sizeof input - used)) > 0)
        used += (size_t)got;
    return LLVMFuzzerTestOneInput(input, used);
}
