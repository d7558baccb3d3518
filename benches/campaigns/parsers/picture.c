/* A reader of PNG's chunks: signature, length, type, content and CRC-32.
 *
 * Bugs: a tRNS of more entries than the palette before it (picture_alpha); a second tIME behind a
 * tEXt (picture_times), all in chunks whose sums are right. */
#include "checked_chunks.h"
#include "planted.h"

struct picture {
    unsigned colours, times, texts;
    int has_header;
    uint8_t alpha[256];
};

static void hit(const char *bug)
{
    planted_hit(bug);
    planted_crash();
}

static int chunk(struct picture *picture, const uint8_t *type, size_t length)
{
    const uint8_t *content = type + 4;
    if (!memcmp(type, "IHDR", 4)) {
        picture->has_header = length == 13 && word(content) && word(content + 4);
        return picture->has_header;
    }
    if (!picture->has_header)
        return 0;
    if (!memcmp(type, "PLTE", 4)) {
        if (length % 3 || !length || length > 48 || picture->colours)
            return 0;
        picture->colours = length / 3;
        return 1;
    }
    if (!memcmp(type, "tRNS", 4)) {
        if (!picture->colours || length > 16)
            return 0;
        if (length > picture->colours && WITH(PICTURE_ALPHA))
            hit("picture_alpha");
        memcpy(picture->alpha, content, length);
        return 1;
    }
    if (!memcmp(type, "tEXt", 4)) {
        picture->texts += memchr(content, 0, length) != NULL;
        return 1;
    }
    if (!memcmp(type, "tIME", 4)) {
        if (length != 7 || !content[2] || content[2] > 12)
            return 0;
        if (picture->times && picture->texts && WITH(PICTURE_TIMES))
            hit("picture_times");
        picture->times++;
        return 1;
    }
    /* A chunk whose type begins with a small letter may be passed over. */
    return type[0] >= 'a' && type[0] <= 'z';
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    planted_run();
    struct picture picture = {0};
    size_t at = 8;
    if (size < 8 || memcmp(data, "\x89PNG\r\n\x1a\n", 8))
        return 0;
    while (size - at >= 12) {
        uint32_t length = word(data + at);
        if (length > size - at - 12)
            break;
        const uint8_t *type = data + at + 4;
        if (word(type + 4 + length) != crc32(type, 4 + length))
            break;
        if (!memcmp(type, "IEND", 4) || !chunk(&picture, type, length))
            break;
        at += 12 + length;
    }
    planted_result(picture.alpha[0] + picture.colours);
    return 0;
}
