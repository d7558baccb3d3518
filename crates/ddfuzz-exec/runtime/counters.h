/* The counters that clang's -fsanitize-coverage=inline-8bit-counters puts into a program. */
#ifndef DDFUZZ_COUNTERS_H
#define DDFUZZ_COUNTERS_H

#include <stddef.h>
#include <stdint.h>

struct counters {
    uint8_t *at; /* the program's */
    size_t size;
    uint8_t *reached; /* shared: what all runs so far have reached */
    uint8_t *slots;   /* shared */
    size_t slot_count, slots_used;
};

/* Puts them into the shared memory of `size` bytes at `page`; without room there are no slots. */
void counters_share(struct counters *counters, uint8_t *page, size_t size);

/* Before a run. */
void counters_clear(struct counters *counters);
/* After a run: whether it reached what none before it did. */
int counters_are_novel(struct counters *counters);
/* Whether there is room for those of one more run. */
int counters_have_room(const struct counters *counters);
/* The number, from 1, of the slot that has them now. */
uint32_t counters_keep(struct counters *counters);

#endif
