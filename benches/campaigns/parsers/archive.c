/* An archive: a magic of eight bytes, a version of four, then members, each with the length of its
 * name, the name, and the length of its content in two bytes.
 *
 * Bugs: version 0x20070612 has an index that was never made (archive_magic); a name of exactly 24
 * bytes leaves no room for the zero behind it (archive_name). */
#include "planted.h"

enum { NAME = 24, MEMBERS = 8 };

struct member {
    char name[NAME];
    volatile uint8_t guard;
    size_t at, length;
};

struct archive {
    struct member members[MEMBERS];
    size_t count;
    uint32_t *index;
};

struct reader {
    const uint8_t *data;
    size_t size, at;
};

static int left(const struct reader *reader, size_t count)
{
    return reader->size - reader->at >= count;
}

static uint32_t number(struct reader *reader, int bytes)
{
    uint32_t value = 0;
    for (int i = 0; i < bytes; i++)
        value |= (uint32_t)reader->data[reader->at++] << 8 * i;
    return value;
}

static int read_name(struct reader *reader, struct member *member)
{
    if (!left(reader, 1))
        return 0;
    size_t length = number(reader, 1);
    /* The zero needs a byte, too. */
    size_t most = WITH(ARCHIVE_NAME) ? NAME : NAME - 1;
    if (!length || length > most || !left(reader, length))
        return 0;
    for (size_t i = 0; i < length; i++) {
        uint8_t byte = reader->data[reader->at++];
        if (byte < ' ' || byte == '/')
            return 0;
        member->name[i] = (char)byte;
    }
    uint8_t *end = (uint8_t *)member->name + length;
    *(volatile uint8_t *)end = 0;
    if (member->guard != 0xa5) {
        planted_hit("archive_name");
        planted_crash();
    }
    return 1;
}

static int read_member(struct reader *reader, struct archive *archive)
{
    struct member *member = &archive->members[archive->count];
    member->guard = 0xa5;
    if (!read_name(reader, member) || !left(reader, 2))
        return 0;
    member->length = number(reader, 2);
    member->at = reader->at;
    if (!left(reader, member->length))
        return 0;
    reader->at += member->length;
    archive->count++;
    return 1;
}

/* Members that are there twice are an error. */
static int is_sound(const struct archive *archive)
{
    for (size_t i = 0; i < archive->count; i++)
        for (size_t k = 0; k < i; k++)
            if (!strncmp(archive->members[i].name, archive->members[k].name, NAME))
                return 0;
    return 1;
}

static int read_header(struct reader *reader, struct archive *archive)
{
    if (!left(reader, 12) || memcmp(reader->data, "\211ARCv2\r\n", 8))
        return 0;
    reader->at = 8;
    uint32_t version = number(reader, 4);
    if (version == 0x20070612) {
        /* Archives of that day begin with an index. */
        if (WITH(ARCHIVE_MAGIC)) {
            planted_hit("archive_magic");
            *(volatile uint32_t *)archive->index = version;
        }
        return 0;
    }
    return version >= 1 && version <= 3;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    planted_run();
    struct archive archive = {.count = 0, .index = NULL};
    struct reader reader = {data, size, 0};
    if (!read_header(&reader, &archive))
        return 0;
    while (archive.count < MEMBERS && reader.at < size)
        if (!read_member(&reader, &archive))
            return 0;
    planted_result((uint64_t)is_sound(&archive));
    return 0;
}
