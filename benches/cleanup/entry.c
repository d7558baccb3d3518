/* The entry of fuzzers for a bundled target, whose output nobody wants. */
#include "../../targets/target.h"

#include <stdio.h>

__attribute__((constructor)) static void be_quiet(void)
{
    FILE *nowhere = fopen("/dev/null", "w");
    if (nowhere)
        stdout = stderr = nowhere;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    target_main(data, size);
    return 0;
}
