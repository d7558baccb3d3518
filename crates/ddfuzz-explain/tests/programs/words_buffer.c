#include "words_buffer.h"

#include <stdlib.h>

struct buffer {
    char *text;
    unsigned long used;
};

struct buffer *buffer_make(void)
{
    struct buffer *buffer = calloc(1, sizeof *buffer);
    buffer->text = calloc(1, 4096);
    return buffer;
}

void buffer_clear(struct buffer *buffer)
{
    buffer->used = 0;
}

void buffer_add(struct buffer *buffer, char letter)
{
    if (buffer->used < 4095)
        buffer->text[buffer->used++] = letter;
}

const char *buffer_text(struct buffer *buffer)
{
    buffer->text[buffer->used] = 0;
    return buffer->text;
}
