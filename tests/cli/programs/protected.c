/* A frame as many formats have them: u16 size of the payload, u32 hash of it, payload. Both are
   checked before anything else is. The hash is one that nobody knows. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static uint32_t hash_of(const uint8_t *bytes, size_t size)
{
    uint32_t hash = 77;
    for (size_t i = 0; i < size; i++)
        hash = ((hash << 5 | hash >> 27) * 31) ^ bytes[i];
    return hash;
}

__attribute__((noinline)) static void trusts_its_payload(void)
{
    abort();
}

int main(void)
{
    static uint8_t bytes[1 << 16];
    size_t size = fread(bytes, 1, sizeof bytes, stdin), found = 0;
    uint16_t length;
    uint32_t hash;
    if (size < 6)
        return 0;
    memcpy(&length, bytes, 2);
    memcpy(&hash, bytes + 2, 4);
    if (length != size - 6 || hash != hash_of(bytes + 6, length))
        return 1;
    for (size_t i = 0; i < length; i++)
        found += found < 4 && bytes[6 + i] == (uint8_t)"BUG!"[found];
    if (found == 4)
        trusts_its_payload();
    return 0;
}
