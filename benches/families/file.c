/* Strict readers of binary files, each with a content that it cannot do with.
 * VARIANT 0: WAV, a list of information that gives no date in its date
 * VARIANT 1: PNG, a gamma of 0 behind a palette
 * VARIANT 2: protobuf, -1 in a fixed32 four levels deep
 * VARIANT 3: DER, a boolean that is neither 0 nor 255 in an extension */
#include "family.h"
#include <setjmp.h>

BUG_WRITE(content_is_not_expected)

enum { LEVELS = 64 };
static jmp_buf refused;
static int found, level;

static _Noreturn void refuse(void) { longjmp(refused, 1); }

/* What is left of a file or of a part of it. */
typedef struct { const uint8_t *at; size_t size; } Part;

static Part take(Part *from, size_t size) {
    if (from->size < size) {
        refuse();
    }
    Part part = {from->at, size};
    from->at += size;
    from->size -= size;
    return part;
}

static uint32_t number(Part *from, int size, int is_big) {
    Part bytes = take(from, (size_t)size);
    uint32_t value = 0;
    for (int index = 0; index < size; index++) {
        value = value << 8 | bytes.at[is_big ? index : size - 1 - index];
    }
    return value;
}

static int is(Part part, const char *text) {
    return part.size == strlen(text) && memcmp(part.at, text, part.size) == 0;
}

/* WAV */

static void wav(Part file) {
    if (!is(take(&file, 4), "RIFF") || number(&file, 4, 0) != file.size || !is(take(&file, 4), "WAVE")) {
        refuse();
    }
    uint32_t align = 0;
    while (file.size) {
        Part kind = take(&file, 4);
        uint32_t size = number(&file, 4, 0);
        Part content = take(&file, size);
        take(&file, size & 1);
        if (is(kind, "fmt ")) {
            take(&content, 12);
            align = number(&content, 2, 0);
        } else if (is(kind, "data") && (!align || size % align)) {
            refuse();
        } else if (is(kind, "LIST")) {
            int is_info = is(take(&content, 4), "INFO");
            while (content.size) {
                Part tag = take(&content, 4);
                uint32_t length = number(&content, 4, 0);
                Part text = take(&content, length);
                take(&content, length & 1);
                found |= align && is_info && is(tag, "ICRD") && length && (*text.at < '0' || *text.at > '9');
            }
        }
    }
}

/* PNG */

static uint32_t crc32(Part part) {
    uint32_t crc = ~0u;
    for (size_t index = 0; index < part.size; index++) {
        crc ^= part.at[index];
        for (int bit = 0; bit < 8; bit++) {
            crc = crc >> 1 ^ (crc & 1 ? 0xedb88320 : 0);
        }
    }
    return ~crc;
}

static void png(Part file) {
    if (!is(take(&file, 8), "\x89PNG\r\n\x1a\n")) {
        refuse();
    }
    int palette = 0, chunks = 0;
    for (;; chunks++) {
        uint32_t size = number(&file, 4, 1);
        Part summed = {file.at, (size_t)size + 4};
        Part kind = take(&file, 4), content = take(&file, size);
        if (number(&file, 4, 1) != crc32(summed) || (chunks == 0) != is(kind, "IHDR")) {
            refuse();
        }
        if (is(kind, "IHDR") && (size != 13 || !number(&content, 4, 1) || !number(&content, 4, 1))) {
            refuse();
        } else if (is(kind, "PLTE")) {
            palette = size > 0;
            if (size % 3) {
                refuse();
            }
        } else if (is(kind, "gAMA")) {
            found |= number(&content, 4, 1) == 0 && palette;
        } else if (is(kind, "IEND")) {
            break;
        }
    }
}

/* protobuf */

static uint64_t varint(Part *from) {
    uint64_t value = 0;
    for (int shift = 0; shift < 64; shift += 7) {
        uint32_t byte = number(from, 1, 0);
        value |= (uint64_t)(byte & 127) << shift;
        if (byte < 128) {
            return value;
        }
    }
    refuse();
}

/* The message of each level has the next one in its field 2. */
static void message(Part part, int depth) {
    while (part.size) {
        uint64_t tag = varint(&part);
        switch (tag & 7) {
        case 0:
            varint(&part);
            break;
        case 1:
            take(&part, 8);
            break;
        case 2: {
            Part content = take(&part, varint(&part));
            if (tag >> 3 == 2 && depth < 4) {
                message(content, depth + 1);
            }
            break;
        }
        case 5: {
            uint32_t value = number(&part, 4, 0);
            found |= depth == 4 && tag >> 3 == 7 && value == ~0u;
            break;
        }
        default:
            refuse();
        }
        if (tag >> 3 == 0) {
            refuse();
        }
    }
}

/* DER */

static Part element(Part *from, uint8_t *tag) {
    *tag = (uint8_t)number(from, 1, 1);
    uint32_t size = number(from, 1, 1);
    if (size == 0x81 || size == 0x82) {
        int bytes = (int)size - 0x80;
        size = number(from, bytes, 1);
        if (size < (bytes == 1 ? 128 : 256)) {
            refuse();
        }
    } else if (size >= 128) {
        refuse();
    }
    return take(from, size);
}

/* The elements of a constructed one; an extension is a list with a name and a boolean. */
static void elements(Part part, int in_extensions) {
    if (++level > LEVELS) {
        refuse();
    }
    int is_named = 0;
    while (part.size) {
        uint8_t tag;
        Part content = element(&part, &tag);
        if (tag & 0x20) {
            elements(content, in_extensions || tag == 0xa3);
        } else if (tag == 6) {
            is_named = content.size > 0;
        } else if (tag == 1) {
            if (content.size != 1) {
                refuse();
            }
            found |= in_extensions && is_named && *content.at && *content.at != 255;
        } else if (tag == 2 && !content.size) {
            refuse();
        }
    }
    level--;
}

static void der(Part file) {
    uint8_t tag;
    Part content = element(&file, &tag);
    if (tag != 0x30 || file.size) {
        refuse();
    }
    elements(content, 0);
}

int family(const uint8_t *data, size_t size) {
    found = level = 0;
    if (setjmp(refused)) {
        return REFUSED;
    }
    Part file = {data, size};
    switch (VARIANT) {
    case 0: wav(file); break;
    case 1: png(file); break;
    case 2: message(file, 1); break;
    default: der(file);
    }
    if (found) {
        content_is_not_expected();
    }
    return PASSED;
}
