/* A line of text that is printed at its newline (ul of the fuzz studies).
 * VARIANT 0: 516 printable bytes right before the newline. 1: anywhere in its line; others are
 * not stored. */
#include "family.h"

enum { ROOM = 516 };
BUG_WRITE(flush_overruns_line)

int family(const uint8_t *data, size_t size) {
    size_t stored = 0;
    for (size_t i = 0; i < size; i++) {
        if (data[i] == '\n') {
            if (stored >= ROOM) {
                flush_overruns_line();
            }
            stored = 0;
        } else if (data[i] >= ' ' && data[i] < 0x7f) {
            stored++;
        } else if (VARIANT == 0) {
            stored = 0;
        }
    }
    return PASSED;
}
