/* The coverage counters that clang's -fsanitize-coverage=inline-8bit-counters puts into a
 * program. */
#ifndef DDFUZZ_COUNTERS_H
#define DDFUZZ_COUNTERS_H

#include <stddef.h>
#include <stdint.h>

struct counters {
    uint8_t *at; /* the program's counters */
    size_t size;
    uint8_t *reached; /* shared with ddfuzz: the counter ranges that all runs so far have reached */
    uint8_t *slots;   /* shared with ddfuzz: copies of the counters of single runs */
    size_t slot_count, slots_used;
};

/* Places the tables in the shared memory of `size` bytes at `page`. Without space there are no
 * slots. */
void counters_share(struct counters *counters, uint8_t *page, size_t size);

/* Sets the counters to zero before a run. */
void counters_clear(struct counters *counters);
/* Whether the last run reached a counter range that no earlier run has reached. */
int counters_are_novel(struct counters *counters);
/* Whether a slot is free. */
int counters_have_room(const struct counters *counters);
/* Copies the counters to a slot; returns its number, from 1. */
uint32_t counters_keep(struct counters *counters);

#endif
