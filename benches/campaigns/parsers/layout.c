/* A reader of JSON, strict: layouts are objects with "rows", a list of layouts, and "size".
 *
 * Bugs: layouts eight deep (layout_depth); a list of more than twelve layouts in another list
 * (layout_rows). */
#include "planted.h"

struct reader {
    const uint8_t *at, *end;
    unsigned depth, lists;
    uint64_t sum;
};

static int sign(struct reader *reader, char wanted)
{
    while (reader->at < reader->end && strchr(" \n", *reader->at) && *reader->at)
        reader->at++;
    if (reader->at == reader->end || *reader->at != (uint8_t)wanted)
        return 0;
    reader->at++;
    return 1;
}

static int number(struct reader *reader)
{
    int digits = 0;
    for (; reader->at < reader->end && *reader->at >= '0' && *reader->at <= '9'; digits++)
        reader->sum = reader->sum * 10 + (*reader->at++ - '0');
    return digits > 0 && digits < 6;
}

static int key(struct reader *reader, char to[8])
{
    size_t length = 0;
    if (!sign(reader, '"'))
        return 0;
    while (length < 7 && reader->at < reader->end && *reader->at >= 'a' && *reader->at <= 'z')
        to[length++] = (char)*reader->at++;
    to[length] = 0;
    return sign(reader, '"') && sign(reader, ':');
}

static void hit(const char *bug)
{
    planted_hit(bug);
    planted_crash();
}

static int layout(struct reader *reader);

static int rows(struct reader *reader)
{
    unsigned count = 0;
    if (!sign(reader, '['))
        return 0;
    reader->lists++;
    do {
        if (!layout(reader))
            return 0;
        if (++count > 12 && reader->lists > 1 && WITH(LAYOUT_ROWS))
            hit("layout_rows");
    } while (sign(reader, ','));
    reader->lists--;
    return sign(reader, ']');
}

static int layout(struct reader *reader)
{
    if (!sign(reader, '{') || reader->depth > 20)
        return 0;
    if (++reader->depth >= 8 && WITH(LAYOUT_DEPTH))
        hit("layout_depth");
    if (!sign(reader, '}')) {
        do {
            char name[8];
            if (!key(reader, name))
                return 0;
            if (!(strcmp(name, "rows") ? number(reader) : rows(reader)))
                return 0;
        } while (sign(reader, ','));
        if (!sign(reader, '}'))
            return 0;
    }
    reader->depth--;
    return 1;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    planted_run();
    struct reader reader = {data, data + size, 0, 0, 0};
    int whole = layout(&reader) && reader.at == reader.end;
    planted_result(whole ? reader.sum : 0);
    return 0;
}
