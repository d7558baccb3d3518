/* Lines behind a header; one of them is not handled. All end in a newline.
 * VARIANT 0: "%PDF" and "trouble!". 1: "V2" and "goto end ;" anywhere; an unknown first line is
 * refused. */
#include "family.h"

static const char *const HEADER = VARIANT == 0 ? "%PDF" : "V2";
static const char *const LINE = VARIANT == 0 ? "trouble!" : "goto end ;";
BUG_ABORT(line_is_not_handled)

int family(const uint8_t *data, size_t size) {
    size_t number = 0;
    for (size_t from = 0; from < size; number++) {
        const uint8_t *end = memchr(data + from, '\n', size - from);
        if (!end) {
            return number == 0 ? REFUSED : PASSED;
        }
        size_t length = (size_t)(end - data) - from;
        const char *expected = number == 0 ? HEADER : LINE;
        int equal = length == strlen(expected) && memcmp(data + from, expected, length) == 0;
        if (number == 0 && !equal) {
            return REFUSED;
        }
        if (number > 0 && equal) {
            line_is_not_handled();
        }
        from += length + 1;
    }
    return PASSED;
}
