/* A family as a harness of libFuzzer. */
#include "family.h"
#include "slurp.h"

void announce(const char *bug) { (void)bug; }

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    count_call();
    family(data, size);
    return 0;
}
