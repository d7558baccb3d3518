/* FIRST, and, where VARIANT is not 0, SECOND: 1 behind it, 2 anywhere. */
#include "family.h"

BUG_WRITE(bytes_meet)

int family(const uint8_t *data, size_t size) {
    const uint8_t *first = memchr(data, FIRST, size);
    if (!first) {
        return PASSED;
    }
#if VARIANT == 0
    bytes_meet();
#else
    const uint8_t *from = VARIANT == 1 ? first + 1 : data;
    if (memchr(from, SECOND, (size_t)(data + size - from))) {
        bytes_meet();
    }
#endif
    return PASSED;
}
