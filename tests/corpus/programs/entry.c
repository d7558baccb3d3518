/* A bundled target as a libFuzzer harness. */
#include "target.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    target_main(data, size);
    return 0;
}
