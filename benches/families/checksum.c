/* A length, a payload and a checksum, both checked; the payload must hold NEEDLE's bytes in order.
 * VARIANT 0: u16 little endian, payload, CRC32 (little endian).      needle of 4
 * VARIANT 1: u16 big endian, payload, sum of bytes u8.               needle of 7
 * VARIANT 2: u16 little endian, sum of bytes u16 little endian, payload.  needle of 6
 * VARIANT 3: u16 big endian, payload, all bytes xored.               needle of 7
 * VARIANT 4: u16 little endian, sum of bytes u32 big endian, payload.     needle of 4 */
#include "family.h"

#if VARIANT == 0 || VARIANT == 4
#define NEEDLE "BUG!"
#elif VARIANT == 2
#define NEEDLE "crash!"
#else
#define NEEDLE "trouble"
#endif

/* Bytes of the checksum before and behind the payload. */
enum {
    BEFORE = VARIANT == 2 ? 2 : VARIANT == 4 ? 4 : 0,
    BEHIND = VARIANT == 0 ? 4 : BEFORE ? 0 : 1
};
BUG_WRITE(payload_is_trusted)

static uint32_t crc32(const uint8_t *data, size_t size) {
    uint32_t crc = ~0u;
    for (size_t i = 0; i < size; i++) {
        crc ^= data[i];
        for (int bit = 0; bit < 8; bit++) {
            crc = crc >> 1 ^ (crc & 1 ? 0xedb88320u : 0);
        }
    }
    return ~crc;
}

static uint32_t sum_of(const uint8_t *data, size_t size) {
    uint32_t sum = 0;
    for (size_t i = 0; i < size; i++) {
        sum = VARIANT == 3 ? sum ^ data[i] : sum + data[i];
    }
    switch (VARIANT) {
    case 0: return crc32(data, size);
    case 2: return sum & 0xffff;
    case 4: return sum;
    default: return sum & 0xff;
    }
}

/* The number that `size` bytes hold. */
static uint32_t number(const uint8_t *at, size_t size, int big) {
    uint32_t value = 0;
    for (size_t i = 0; i < size; i++) {
        value |= (uint32_t)at[i] << 8 * (big ? size - 1 - i : i);
    }
    return value;
}

int family(const uint8_t *data, size_t size) {
    if (size < 2 + BEFORE + BEHIND) {
        return size == 0 ? PASSED : REFUSED;
    }
    size_t length = number(data, 2, VARIANT == 1 || VARIANT == 3);
    if (length != size - 2 - BEFORE - BEHIND) {
        return REFUSED;
    }
    const uint8_t *payload = data + 2 + BEFORE, *check = BEFORE ? data + 2 : payload + length;
    uint32_t expected = number(check, BEFORE + BEHIND, VARIANT == 4);
    if (sum_of(payload, length) != expected) {
        return REFUSED;
    }
    size_t found = 0;
    for (size_t i = 0; i < length; i++) {
        found += found < strlen(NEEDLE) && payload[i] == (uint8_t)NEEDLE[found];
    }
    if (found == strlen(NEEDLE)) {
        payload_is_trusted();
    }
    return PASSED;
}
