/* Reads commands and fills a part of a grid. "s W H" selects a part, whose sides are swapped by mistake;
   "n V" keeps a number, which is taken for the index of a cell by mistake; "a" checks a sum. */
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ROWS = 3, COLUMNS = 8 };
enum kind { NUMBER, CELL };

struct part {
    int width;
    int height;
};

struct value {
    enum kind kind;
    int number;
};

static char *rows[ROWS + 1];
static int cells[4];
static struct part part;
static struct value kept;
static int sum;

static void set_part(struct part *it, int width, int height)
{
    it->width = width;
    it->height = height;
}

static void fill(void)
{
    for (int y = 0; y < part.height; y++)
        memset(rows[y], '#', part.width);
}

static struct value parsed(char sign, int number)
{
    struct value it;
    switch (sign) {
    case 'n':
        it.kind = NUMBER;
        it.number = number;
    case 'c':
        it.kind = CELL;
        it.number = number;
    }
    return it;
}

static int worth(const struct value *it)
{
    if (it->kind == CELL)
        return cells[it->number];
    return it->number;
}

static void add(int number)
{
    sum += number;
    sum += 1;
}

int main(void)
{
    char line[100];
    int one, other;
    for (int y = 0; y < ROWS; y++)
        rows[y] = calloc(1, COLUMNS + 1);
    while (fgets(line, sizeof line, stdin)) {
        if (sscanf(line, "s %d %d", &one, &other) == 2) {
            set_part(&part, other, one);
            fill();
        } else if (sscanf(line, "n %d", &one) == 1) {
            kept = parsed('n', one);
            struct value moved = kept;
            printf("%d\n", worth(&moved));
        } else if (sscanf(line, "a %d", &one) == 1) {
            add(one);
            assert(sum < 100);
        }
    }
    return 0;
}
