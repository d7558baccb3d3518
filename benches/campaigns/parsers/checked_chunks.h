/* What the readers of chunks share: numbers of four bytes, and the sum at the end of a chunk. */
#ifndef CHECKED_CHUNKS_H
#define CHECKED_CHUNKS_H
#include <stddef.h>
#include <stdint.h>

/* The CRC-32 of a chunk, as PNG has it. */
static uint32_t crc32(const uint8_t *data, size_t size)
{
    uint32_t crc = 0xffffffff;
    for (size_t i = 0; i < size; i++) {
        crc ^= data[i];
        for (int bit = 0; bit < 8; bit++)
            crc = crc >> 1 ^ (crc & 1 ? 0xedb88320 : 0);
    }
    return ~crc;
}

/* Four bytes, the highest first. */
static uint32_t word(const uint8_t *at)
{
    return (uint32_t)at[0] << 24 | (uint32_t)at[1] << 16 | (uint32_t)at[2] << 8 | at[3];
}
#endif
