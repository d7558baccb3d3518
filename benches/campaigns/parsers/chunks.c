/* An image of chunks, each with length, name, content and the CRC-32 of name and content, as in PNG.
 *
 * Bugs: a palette of more than 16 colours (chunk_palette); an overlay before there is a canvas, in
 * chunks whose sums are right (chunk_order). */
#include "checked_chunks.h"
#include "planted.h"

enum { COLOURS = 16 };

struct image {
    uint32_t width, height;
    uint8_t palette[3 * COLOURS];
    uint8_t guard[8];
    uint8_t *canvas;
    int has_header, shows;
};

static int header(struct image *image, const uint8_t *content, size_t length)
{
    if (length != 8 || image->has_header)
        return 0;
    image->width = word(content);
    image->height = word(content + 4);
    if (!image->width || !image->height || image->width > 64 || image->height > 64)
        return 0;
    image->has_header = 1;
    return 1;
}

static int palette(struct image *image, const uint8_t *content, size_t length)
{
    if (!image->has_header || length % 3 || length > 60)
        return 0;
    if (length > sizeof image->palette && !WITH(CHUNK_PALETTE))
        return 0;
    uint8_t *to = image->palette;
    for (size_t i = 0; i < length && i < sizeof image->palette + sizeof image->guard; i++)
        *(volatile uint8_t *)(to + i) = content[i];
    if (length > sizeof image->palette) {
        planted_hit("chunk_palette");
        planted_crash();
    }
    return 1;
}

static int canvas(struct image *image, const uint8_t *content, size_t length)
{
    if (!image->has_header || image->canvas || length < 1)
        return 0;
    image->canvas = malloc(image->width * image->height);
    if (!image->canvas)
        return 0;
    memset(image->canvas, content[0], image->width * image->height);
    return 1;
}

static int overlay(struct image *image, const uint8_t *content, size_t length)
{
    if (!image->has_header || length != 2)
        return 0;
    if (!image->canvas) {
        if (!WITH(CHUNK_ORDER))
            return 0;
        planted_hit("chunk_order");
        planted_crash();
    }
    size_t at = (size_t)content[0] * content[1];
    if (at < image->width * image->height)
        image->canvas[at] ^= 0xff;
    return 1;
}

static int chunk(struct image *image, const uint8_t *name, size_t length)
{
    const uint8_t *content = name + 4;
    if (!memcmp(name, "HEAD", 4))
        return header(image, content, length);
    if (!memcmp(name, "PLTE", 4))
        return palette(image, content, length);
    if (!memcmp(name, "DATA", 4))
        return canvas(image, content, length);
    if (!memcmp(name, "OVER", 4))
        return overlay(image, content, length);
    /* A chunk whose name begins with a small letter may be passed over. */
    return name[0] >= 'a' && name[0] <= 'z';
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    planted_run();
    struct image image = {0};
    size_t at = 4;
    if (size < 4 || memcmp(data, "\x8aIMG", 4))
        return 0;
    while (size - at >= 12) {
        uint32_t length = word(data + at);
        if (length > size - at - 12)
            break;
        const uint8_t *name = data + at + 4;
        if (word(name + 4 + length) != crc32(name, 4 + length))
            break;
        if (!chunk(&image, name, length))
            break;
        at += 12 + length;
    }
    planted_result(image.canvas ? image.canvas[0] : image.palette[0]);
    free(image.canvas);
    return 0;
}
