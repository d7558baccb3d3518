/* A text line in a buffer of 2121 bytes (flex of the fuzz studies).
 * VARIANT 0: the line ends at a newline. 1: at any control character. */
#include "family.h"

enum { ROOM = 2121 };
BUG_WRITE(line_overruns_buffer)

int family(const uint8_t *data, size_t size) {
    size_t run = 0;
    for (size_t i = 0; i < size; i++) {
        int ends = VARIANT == 0 ? data[i] == '\n' : data[i] < ' ';
        run = ends ? 0 : run + 1;
        if (run >= ROOM) {
            line_overruns_buffer();
        }
    }
    return PASSED;
}
