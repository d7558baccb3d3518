/* Bytes that must all be there, in order. NEEDED of them come from the stream SEED.
 * VARIANT 0: with anything in between. 1: and nothing else but white space and dots. */
#include "family.h"

BUG_ABORT(sequence_is_complete)

/* The needed byte at a place; BASE and SPAN are its alphabet. */
static uint8_t needed(uint32_t *state) { return (uint8_t)(BASE + next_byte(state) % SPAN); }

int family(const uint8_t *data, size_t size) {
    uint32_t state = SEED;
    size_t found = 0;
    uint8_t want = needed(&state);
    for (size_t i = 0; i < size && found < NEEDED; i++) {
        if (data[i] == want) {
            found++;
            want = needed(&state);
        } else if (VARIANT == 1 && data[i] != '.' && data[i] != ' ' && data[i] != '\n') {
            return REFUSED;
        }
    }
    if (found == NEEDED) {
        sequence_is_complete();
    }
    return PASSED;
}
