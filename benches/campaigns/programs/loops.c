/* A parser of records. With PLANTED_ONLY 1, 2 or 3 it has a loop without end: in a record of no
 * length, in an item of a list, or in a chain of names that ends in itself. */
#include "../parsers/planted.h"

#include <string.h>

#define FAR __attribute__((noinline))
#define HAS(depth) (PLANTED_ONLY == (depth))

static volatile unsigned long sink;
static volatile int yes = 1;

struct names {
    uint8_t of[16], known;
};

FAR static void without_end(void)
{
    while (yes)
        sink++;
}

FAR static size_t record(const uint8_t *at, size_t left)
{
    size_t length = left > 1 ? at[1] : 0;
    if (HAS(1) && left > 1 && length == 0)
        without_end();
    return 2 + length;
}

FAR static size_t list(const uint8_t *at, size_t left)
{
    size_t next = 3;
    if (left < 4)
        return left;
    for (unsigned item = 0; item < (at[1] & 15) && next < left; item++) {
        if (HAS(2) && at[2] == '*' && at[next] == ';')
            without_end();
        sink += at[next];
        next += at[2] ? at[2] : 1;
    }
    return next;
}

FAR static size_t name(struct names *names, const uint8_t *at, size_t left)
{
    if (left > 2) {
        names->of[at[1] & 15] = at[2] & 15;
        names->known++;
    }
    return 3;
}

FAR static size_t reference(const struct names *names, const uint8_t *at, size_t left)
{
    uint8_t name = left > 1 ? at[1] & 15 : 0;
    for (unsigned step = 0; names->known > 2 && names->of[name] != 0xff; step++) {
        if (!HAS(3) && step > 16)
            break;
        name = names->of[name];
        sink++;
    }
    return 2;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    planted_run();
    struct names names = {.known = 0};
    memset(names.of, 0xff, sizeof names.of);
    if (size < 4 || memcmp(data, "TLV", 3) != 0)
        return 0;
    for (size_t at = 3; at < size;) {
        switch (data[at]) {
        case 'S': at += record(data + at, size - at); break;
        case 'L': at += list(data + at, size - at); break;
        case 'N': at += name(&names, data + at, size - at); break;
        case 'R': at += reference(&names, data + at, size - at); break;
        default: at++;
        }
    }
    planted_result(sink);
    return 0;
}
