/* The element that Mozilla could not print (ISSTA 2000, section 4).
 * VARIANT 0: the tag with anything in it. 1: the bytes of <SELECT> in order. */
#include "family.h"

BUG_WRITE(print_select)

int family(const uint8_t *data, size_t size) {
    static const char TAG[] = "<SELECT>";
    if (VARIANT == 1) {
        size_t found = 0;
        for (size_t i = 0; i < size && found < 8; i++) {
            found += data[i] == (uint8_t)TAG[found];
        }
        if (found == 8) {
            print_select();
        }
        return PASSED;
    }
    for (size_t i = 0; i + 8 <= size; i++) {
        if (memcmp(data + i, TAG, 7) == 0 && memchr(data + i, '>', size - i)) {
            print_select();
        }
    }
    return PASSED;
}
