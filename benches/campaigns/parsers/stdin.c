/* The parser as a program that reads one input on its stdin. */
#include "planted.h"

#include <unistd.h>

int main(void)
{
    size_t size = 1 << 20, used = 0;
    uint8_t *input = malloc(size);
    ssize_t got;
    if (!input)
        return 3;
    while (used < size && (got = read(0, input + used, size - used)) > 0)
        used += (size_t)got;
    /* Of exactly its length, so that a read behind it is one behind an allocation. */
    uint8_t *exact = malloc(used ? used : 1);
    if (!exact)
        return 3;
    memcpy(exact, input, used);
    free(input);
    LLVMFuzzerTestOneInput(exact, used);
    free(exact);
    return 0;
}
