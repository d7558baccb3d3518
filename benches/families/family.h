/* A family of failing inputs: one entry, called by one of the drivers beside it.
 *
 * Each case is one source with -DVARIANT=n (0 if not given). A bug crashes by a real fault, in a
 * function that has the bug's name. */
#ifndef DDFUZZ_BENCH_FAMILY_H
#define DDFUZZ_BENCH_FAMILY_H

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#ifndef VARIANT
#define VARIANT 0
#endif

enum { PASSED = 0, REFUSED = 1 };

/* Reads one input: PASSED, or REFUSED where its format does; or does not return. */
int family(const uint8_t *data, size_t size);

/* Tells the driver which bug this is. Only the judge listens, for scripts that look at the
 * message of a crash as people write them. */
void announce(const char *bug);

/* A function of its own, so that a crash is named by it. */
#ifdef __clang__
#define BUG static __attribute__((noinline)) void
#else
#define BUG static __attribute__((noinline, noclone)) void
#endif

/* A bug that writes through a null pointer. */
#define BUG_WRITE(name)                                                                            \
    BUG name(void) {                                                                               \
        announce(#name);                                                                           \
        volatile uint8_t *volatile nowhere = NULL;                                                 \
        *nowhere = 1;                                                                              \
    }

/* A bug that an assertion finds. */
#define BUG_ABORT(name)                                                                            \
    BUG name(void) {                                                                               \
        announce(#name);                                                                           \
        abort();                                                                                   \
    }

/* The stream of needed bytes, the same as `Lcg` of the generators. */
static inline uint8_t next_byte(uint32_t *state) {
    *state = *state * 1664525u + 1013904223u;
    return (uint8_t)(*state >> 24);
}

#endif
