/* Two bugs, and which of them it is depends on a parity.
 * VARIANT 0: FIRST and SECOND are there, in any order; the parity of the length decides.
 * VARIANT 1: SECOND stands behind FIRST; the parity of the place of the first such SECOND decides.
 * The even bug is the one that is held in variant 0, the odd one in variant 1. */
#include "family.h"

BUG_WRITE(even_bug)
BUG_ABORT(odd_bug)

int family(const uint8_t *data, size_t size) {
    const uint8_t *first = memchr(data, FIRST, size);
    if (!first) {
        return PASSED;
    }
    const uint8_t *from = VARIANT == 0 ? data : first + 1;
    const uint8_t *second = memchr(from, SECOND, (size_t)(data + size - from));
    if (!second) {
        return PASSED;
    }
    size_t decides = VARIANT == 0 ? size : (size_t)(second - data);
    if (decides % 2 == 0) {
        even_bug();
    } else {
        odd_bug();
    }
    return PASSED;
}
