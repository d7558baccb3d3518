/* Four callers give one helper function more than the buffers hold that they own: four bugs behind
 * one crash. Each line of the input is one call; with an argument the last line comes first. */
#include <stdio.h>
#include <string.h>

static int *volatile nowhere;

__attribute__((noinline)) static void copy(const char *from, size_t length, size_t room) {
    if (length > room)
        *nowhere = from[0];
}

#define CALLER(name, room)                                                                          \
    __attribute__((noinline)) static void name(const char *text, size_t length) {                  \
        copy(text, length, room);                                                                   \
        __asm__ volatile("");                                                                       \
    }

CALLER(set_name, 4)
CALLER(set_title, 6)
CALLER(set_city, 8)
CALLER(set_note, 10)

static void call(const char *line) {
    size_t length = strcspn(line, "\n");
    switch (line[0]) {
    case 'N':
        set_name(line + 1, length - 1);
        break;
    case 'T':
        set_title(line + 1, length - 1);
        break;
    case 'C':
        set_city(line + 1, length - 1);
        break;
    case 'O':
        set_note(line + 1, length - 1);
        break;
    }
}

int main(int argc, char **argv) {
    (void)argv;
    static char lines[64][128];
    int count = 0;
    while (count < 64 && fgets(lines[count], sizeof lines[0], stdin))
        count++;
    for (int at = 0; at < count; at++)
        call(lines[argc > 1 ? count - 1 - at : at]);
    return 0;
}
