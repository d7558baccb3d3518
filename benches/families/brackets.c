/* Balanced brackets and words; DEEP levels are too many.
 * VARIANT 0: round ones. 1: three kinds, which must match. 2: as 0, and the crash comes only behind
 * the check of the whole text. */
#include "family.h"

enum { LEVELS = 4096, DEEP = 6 };
BUG_ABORT(nesting_too_deep)

static uint8_t closing(uint8_t opening) {
    switch (opening) {
    case '(': return ')';
    case '[': return VARIANT == 1 ? ']' : 0;
    case '{': return VARIANT == 1 ? '}' : 0;
    default: return 0;
    }
}

static int is_closing(uint8_t byte) {
    return byte == ')' || (VARIANT == 1 && (byte == ']' || byte == '}'));
}

int family(const uint8_t *data, size_t size) {
    uint8_t expected[LEVELS];
    size_t depth = 0, deepest = 0;
    for (size_t i = 0; i < size; i++) {
        uint8_t close = closing(data[i]);
        if (close) {
            if (depth == LEVELS) {
                return REFUSED;
            }
            expected[depth++] = close;
            deepest = depth > deepest ? depth : deepest;
        } else if (is_closing(data[i]) && (depth == 0 || expected[--depth] != data[i])) {
            return REFUSED;
        }
    }
    if (depth != 0) {
        return REFUSED;
    }
    if (deepest >= DEEP) {
        nesting_too_deep();
    }
    return PASSED;
}
