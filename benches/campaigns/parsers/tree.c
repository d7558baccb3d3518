/* A tree of tagged values: tag, length in two bytes, content. A list holds values; a table says how
 * many rows and columns it has, and its length must agree with that.
 *
 * Bugs: rows times columns is computed in sixteen bits (tree_product); lists may lie in each other
 * deeper than there is room for (tree_depth). */
#include "planted.h"

enum { DEPTH = 5, LIST = 'L', TEXT = 'T', TABLE = 'B', NUMBER = 'N' };

struct open_lists {
    uint16_t ends[DEPTH];
    uint16_t guard;
    size_t values, texts;
    uint64_t sum;
};

static unsigned half(const uint8_t *at)
{
    return (unsigned)at[0] << 8 | at[1];
}

static int text(struct open_lists *open, const uint8_t *content, size_t length)
{
    for (size_t i = 0; i < length; i++)
        if (content[i] < ' ' || content[i] > '~')
            return 0;
    open->texts++;
    return 1;
}

static int numeral(struct open_lists *open, const uint8_t *content, size_t length)
{
    if (length > 8)
        return 0;
    uint64_t value = 0;
    for (size_t i = 0; i < length; i++)
        value = value << 8 | content[i];
    open->sum += value;
    return 1;
}

static int table(const uint8_t *content, size_t length)
{
    if (length < 4)
        return 0;
    unsigned rows = half(content), columns = half(content + 2);
    uint16_t short_product = (uint16_t)(rows * columns);
    size_t cells = WITH(TREE_PRODUCT) ? short_product : (size_t)rows * columns;
    if (!rows || !columns || cells != length - 4)
        return 0;
    if ((size_t)rows * columns > length) {
        planted_hit("tree_product");
        planted_crash();
    }
    unsigned filled = 0;
    for (unsigned row = 0; row < rows; row++)
        for (unsigned column = 0; column < columns; column++)
            filled += content[4 + row * columns + column] != 0;
    return filled <= cells;
}

static int values(struct open_lists *open, const uint8_t *data, size_t size, size_t depth)
{
    size_t at = 0;
    while (size - at >= 3) {
        unsigned tag = data[at];
        size_t length = half(data + at + 1);
        const uint8_t *content = data + at + 3;
        if (length > size - at - 3)
            return 0;
        int sound = 0;
        switch (tag) {
        case LIST:
            if (depth >= DEPTH) {
                if (!WITH(TREE_DEPTH))
                    return 0;
                planted_hit("tree_depth");
                planted_crash();
            }
            open->ends[depth] = (uint16_t)length;
            sound = values(open, content, length, depth + 1);
            break;
        case TEXT:
            sound = text(open, content, length);
            break;
        case NUMBER:
            sound = numeral(open, content, length);
            break;
        case TABLE:
            sound = table(content, length);
            break;
        }
        if (!sound)
            return 0;
        open->values++;
        at += 3 + length;
    }
    return at == size;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    planted_run();
    struct open_lists open = {.guard = 0x5a5a};
    if (size < 2 || data[0] != 'v' || data[1] != '1')
        return 0;
    values(&open, data + 2, size - 2, 0);
    planted_result(open.sum + open.texts + open.values + open.ends[0]);
    return 0;
}
