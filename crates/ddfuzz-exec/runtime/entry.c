#define _GNU_SOURCE
#include "entry.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "load_address.h"

/* Parses the next number and advances `words` past it. */
static uintptr_t next_number(const char **words)
{
    char *end;
    if (**words != ',')
        return 0;
    uintptr_t number = (uintptr_t)strtoull(*words + 1, &end, 16);
    *words = end;
    return number;
}

struct entry_point entry_from(const char *words)
{
    struct entry_point entry = {0};
    if (!words || !*words)
        return entry;
    uintptr_t base = program_base();
    entry.is_fuzzer = *words++ == 'f';
    uintptr_t function = next_number(&words), initialize = next_number(&words);
    uintptr_t find_module = next_number(&words);
    uintptr_t start = next_number(&words), end = next_number(&words);
    entry.lowest_stack = next_number(&words);
    entry.function = (int (*)(const uint8_t *, size_t))(base + function);
    if (initialize)
        entry.initialize = (int (*)(int *, char ***))(base + initialize);
    if (find_module)
        entry.find_module = (int (*)(void *, char *, size_t, void **))(base + find_module);
    if (start < end) {
        entry.counters = (uint8_t *)(base + start);
        entry.counter_count = end - start;
    }
    while (entry.callback_count < CALLBACKS && *words == ',')
        entry.callbacks[entry.callback_count++] = base + next_number(&words);
    return entry;
}

void entry_prepare_reports(const struct entry_point *entry)
{
    void *offset;
    if (entry->find_module)
        entry->find_module((void *)(uintptr_t)entry->function, NULL, 0, &offset);
}

int entry_call(const struct entry_point *entry, const uint8_t *input, size_t length)
{
    int result = entry->function(input, length);
    return entry->is_fuzzer ? 0 : result & 0xff;
}

/* Size in bytes from which a block is worth huge pages, which take fewer page faults. */
enum { LARGE = 4 << 20 };

/* Allocates a heap block of exactly this size; NULL without memory. */
static uint8_t *allocate(size_t length)
{
    uint8_t *block = malloc(length ? length : 1);
    uintptr_t page = 4095, start = ((uintptr_t)block + page) & ~page;
    uintptr_t end = ((uintptr_t)block + length) & ~page;
    if (block && length >= LARGE)
        madvise((void *)start, end - start, MADV_HUGEPAGE); /* refused where there are none */
    return block;
}

int entry_input(int fd, size_t at, size_t length, uint8_t **input)
{
    size_t taken = 0;
    *input = allocate(length);
    if (!*input)
        return ENOMEM;
    while (taken < length) {
        ssize_t got = pread(fd, *input + taken, length - taken, (off_t)(at + taken));
        if (got <= 0)
            return got < 0 ? errno : EIO;
        taken += (size_t)got;
    }
    return 0;
}
