/* A count, and as many records, each with its length before it; nothing may follow.
 * VARIANT 0: count u8, lengths u8; a payload holds '!'.
 * VARIANT 1: count u16 little endian, lengths u16 big endian; a payload holds '!'.
 * VARIANT 2: count u8, each record a type and a length u8; type 0x7f crashes. */
#include "family.h"

BUG_WRITE(record_handler_fails)

int family(const uint8_t *data, size_t size) {
    enum { COUNT = VARIANT == 1 ? 2 : 1, HEAD = VARIANT == 0 ? 1 : 2 };
    if (size < COUNT) {
        return size == 0 ? PASSED : REFUSED;
    }
    size_t count = COUNT == 2 ? data[0] | (size_t)data[1] << 8 : data[0], at = COUNT;
    int fails = 0;
    for (size_t record = 0; record < count; record++) {
        if (size - at < HEAD) {
            return REFUSED;
        }
        size_t length = VARIANT == 0   ? data[at]
                        : VARIANT == 1 ? (size_t)data[at] << 8 | data[at + 1]
                                       : data[at + 1];
        const uint8_t *payload = data + at + HEAD;
        if (size - at - HEAD < length) {
            return REFUSED;
        }
        fails |= VARIANT == 2 ? data[at] == 0x7f : memchr(payload, '!', length) != NULL;
        at += HEAD + length;
    }
    if (at != size) {
        return REFUSED;
    }
    if (fails) {
        record_handler_fails();
    }
    return PASSED;
}
