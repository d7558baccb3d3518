#define _GNU_SOURCE
#include "jump.h"

#include <stddef.h>
#include <string.h>
#include <sys/mman.h>

#include "load_address.h"

#ifndef MAP_FIXED_NOREPLACE
#define MAP_FIXED_NOREPLACE 0x100000
#endif

#ifdef __x86_64__
enum { PAGE = 4096, FAR_JUMP = 14 };

/* A page of long jumps near the program: five-byte jumps reach two gigabytes only. */
static uint8_t *island;
static size_t used;

static uint8_t *page_at(uintptr_t wanted)
{
    uint8_t *at = mmap((void *)wanted, PAGE, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
    if (at == MAP_FAILED)
        return NULL;
    if ((uintptr_t)at == wanted)
        return at;
    munmap(at, PAGE); /* older kernels take the address as a hint */
    return NULL;
}

/* Allocates a page within reach of `entry`; below it first, because the heap grows above. */
static uint8_t *page_near(uintptr_t entry)
{
    uintptr_t from = entry & ~(uintptr_t)(PAGE - 1);
    for (uintptr_t distance = 1 << 18; distance <= 1 << 30; distance *= 2) {
        uint8_t *at = from > distance ? page_at(from - distance) : NULL;
        if (!at)
            at = page_at(from + distance);
        if (at)
            return at;
    }
    return NULL;
}

/* Writes a jump to any address, and places it within reach of `entry`. */
static uint8_t *far_jump(uintptr_t entry, uintptr_t to)
{
    static const uint8_t code[] = {0xff, 0x25, 0, 0, 0, 0}; /* jmp [rip]: the address follows */
    if (!island)
        island = page_near(entry);
    if (!island || used + FAR_JUMP > PAGE || mprotect(island, PAGE, PROT_READ | PROT_WRITE) < 0)
        return NULL;
    uint8_t *at = island + used;
    memcpy(at, code, sizeof code);
    memcpy(at + sizeof code, &to, sizeof to);
    used += FAR_JUMP;
    return mprotect(island, PAGE, PROT_READ | PROT_EXEC) < 0 ? NULL : at;
}

void jump_from(uint64_t address, uintptr_t to)
{
    uintptr_t entry = program_base() + (uintptr_t)address;
    uint8_t *over = far_jump(entry, to);
    if (!over)
        return;
    int64_t distance = (int64_t)((uintptr_t)over - (entry + JUMP));
    if (distance != (int32_t)distance)
        return;
    uintptr_t first = entry & ~(uintptr_t)(PAGE - 1);
    size_t size = ((entry + JUMP - 1) | (PAGE - 1)) + 1 - first;
    if (mprotect((void *)first, size, PROT_READ | PROT_WRITE | PROT_EXEC) < 0)
        return;
    uint8_t jump[JUMP] = {0xe9};
    int32_t near = (int32_t)distance;
    memcpy(jump + 1, &near, sizeof near);
    memcpy((void *)entry, jump, sizeof jump);
    mprotect((void *)first, size, PROT_READ | PROT_EXEC);
}
#else
void jump_from(uint64_t address, uintptr_t to)
{
    (void)address, (void)to;
}
#endif
