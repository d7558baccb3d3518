/* A target that does next to nothing. */
#include <stddef.h>
#include <stdint.h>

static volatile int reached;

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    for (size_t i = 0; i < size && i < 8; i++)
        if (data[i] == (uint8_t)('0' + i))
            reached++;
    return 0;
}
