/* Writes one byte into a buffer, at a place that each line gives without a check. */
#include <stdio.h>
#include <stdlib.h>

struct cursor {
    long at;
    int mode;
};

/* The whole function is one line, which begins with its store. */
__attribute__((noinline)) static void set(struct cursor *cursor, long at) { cursor->at = at; }

static char buffer[64];

__attribute__((noinline)) static void use(const struct cursor *cursor)
{
    buffer[cursor->at] = 1;
}

int main(void)
{
    static struct cursor cursor;
    char line[64];
    while (fgets(line, sizeof line, stdin)) {
        long at = strtol(line, NULL, 10);
        set(&cursor, at);
        cursor.mode++;
    }
    use(&cursor);
    return buffer[3];
}
