/* Decodes words into a buffer that another file defines. Of values, the buffer is not cleared. */
#include <stdio.h>
#include <string.h>

#include "words_buffer.h"

static void decode(struct buffer *to, const char *word)
{
    for (; *word && *word != '\n'; word++)
        buffer_add(to, *word == '_' ? ' ' : *word);
}

int main(int argc, char **argv)
{
    char line[64];
    struct buffer *buffer = buffer_make();
    FILE *file = fopen(argv[argc - 1], "r");
    while (fgets(line, sizeof line, file)) {
        if (line[0] == '#') {
            buffer_clear(buffer);
            decode(buffer, line + 1);
            printf("%s:\n", buffer_text(buffer));
        } else if (strchr(line, '_')) {
            decode(buffer, line);
            printf("= %s\n", buffer_text(buffer));
        } else {
            printf("= %s", line);
        }
    }
    return 0;
}
