/* Records whose fields are overrun, each by another command; what is meant is done as well. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct shape {
    int sides;
    char name[8];
    int (*area)(int);
};

struct table {
    int lengths[6];
    int left;
    int used;
};

struct entry {
    char key[8];
    unsigned char flags;
};

struct head {
    char magic[4];
    int size;
    int used;
};

static struct table table;
static struct entry entries[4];
static int count;

static int square(int side) { return side * side; }

/* A text that is too long for its field. */
static int named(const char *name, int sides)
{
    struct shape *it = calloc(1, sizeof *it);
    it->sides = sides;
    it->area = square;
    strcpy(it->name, name);
    int area = it->area(it->sides);
    free(it);
    return area;
}

/* More words than the table has room for. */
static int split(const char *line)
{
    int n = 0;
    while (*line) {
        int length = strcspn(line, ",\n");
        if (length > 0)
            table.lengths[n++] = length;
        line += length;
        line += *line != 0;
    }
    return n;
}

/* The zero behind a text that fills its field. */
static void filed(struct entry *e, const char *key, size_t length)
{
    e->flags = 5;
    if (length > sizeof e->key)
        length = sizeof e->key;
    memcpy(e->key, key, length);
    e->key[length] = 0;
}

/* Two fields at once, as is meant: the fault is the number. */
static int divided(const char *from)
{
    struct head h;
    memcpy(h.magic, from, 8);
    h.used = h.size - 0x30303030;
    return 1000 / h.used;
}

int main(void)
{
    char line[64];
    while (fgets(line, sizeof line, stdin)) {
        line[strcspn(line, "\n")] = 0;
        const char *rest = line + 1;
        table.left = 100;
        if (line[0] == 'n')
            printf("%d\n", named(rest, 4));
        else if (line[0] == 's') {
            int n = split(rest);
            printf("%d words, %d left\n", n, table.left - n);
        } else if (line[0] == 'f')
            filed(&entries[count++], rest, strlen(rest));
        else if (line[0] == 'd')
            printf("%d\n", divided(rest));
    }
    for (int i = 0; i < count; i++)
        printf("%.8s %d\n", entries[i].key, entries[i].flags);
    return 0;
}
