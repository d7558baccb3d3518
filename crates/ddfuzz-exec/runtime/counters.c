#define _GNU_SOURCE
#include "counters.h"

#include <string.h>

#include "protocol.h"

static size_t stride(const struct counters *counters)
{
    return (counters->size + 63) & ~(size_t)63;
}

void counters_share(struct counters *counters, uint8_t *page, size_t size)
{
    size_t one = stride(counters);
    counters->slots_used = counters->slot_count = 0;
    if (!counters->size || size < COUNTERS + 2 * one) {
        counters->size = 0;
        return;
    }
    counters->reached = page + COUNTERS;
    counters->slots = counters->reached + one;
    counters->slot_count = (size - COUNTERS) / one - 1;
}

void counters_clear(struct counters *counters)
{
    memset(counters->at, 0, counters->size);
}

/* The bit of a counter's range of values, the same ranges as in libFuzzer and AFL: 1, 2, 3, 4 to
 * 7, 8 to 15, 16 to 31, 32 to 127, and more. */
static uint8_t range_of(uint8_t count)
{
    if (count <= 3)
        return (uint8_t)(1u << count >> 1);
    if (count <= 7)
        return 8;
    if (count <= 15)
        return 16;
    if (count <= 31)
        return 32;
    return count <= 127 ? 64 : 128;
}

static int reach(struct counters *counters, size_t index)
{
    uint8_t count = counters->at[index];
    if (!count)
        return 0;
    uint8_t range = range_of(count), *reached = &counters->reached[index];
    if (*reached & range)
        return 0;
    *reached |= range;
    return 1;
}

int counters_are_novel(struct counters *counters)
{
    size_t index = 0;
    int novel = 0;
    for (; index + 8 <= counters->size; index += 8) {
        uint64_t eight;
        memcpy(&eight, counters->at + index, sizeof eight);
        if (!eight)
            continue;
        for (size_t i = index; i < index + 8; i++)
            novel |= reach(counters, i);
    }
    for (; index < counters->size; index++)
        novel |= reach(counters, index);
    return novel;
}

int counters_have_room(const struct counters *counters)
{
    return counters->slots_used < counters->slot_count;
}

uint32_t counters_keep(struct counters *counters)
{
    if (!counters_have_room(counters))
        return 0;
    uint8_t *to = counters->slots + counters->slots_used++ * stride(counters);
    memcpy(to, counters->at, counters->size);
    return (uint32_t)counters->slots_used;
}
