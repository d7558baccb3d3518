/* Three faults whose statement is not the last one that wrote what the program fails by. The first letter of
   the input selects one. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct row {
    uint8_t width;
};
struct stop {
    int level;
    int load;
};
struct car {
    struct stop waiting[4];
    int count;
    struct stop at;
};

static char *names[4] = {"cellar", "ground", "upper", "attic"};
static int table[64];

/* The sum of the widths has eight bits. */
static void widen(struct row *row, int by)
{
    row->width += by;
}

static void fill(int one, int other)
{
    struct row row = {0};
    widen(&row, one);
    widen(&row, other);
    char *text = malloc(row.width + 1);
    memset(text, 'x', one + other);
    text[one + other] = 0;
    printf("%zu\n", strlen(text));
    free(text);
    free(malloc(2000));
}

/* The remainder of a negative number is negative. */
static int opponent(int round, int team)
{
    int left = (round - team) % 7;
    return left;
}

static void draw(int round, int team)
{
    int other = opponent(round, team);
    if (other < 0)
        abort();
    printf("%d\n", table[other]);
}

static void stop_at(struct car *car, int level, int load)
{
    struct stop *stop = &car->waiting[car->count++];
    stop->level = level;
    stop->load = load;
}

static void move(struct car *car)
{
    car->at = car->waiting[--car->count];
}

static void freight(struct car *car, int level, int load)
{
    stop_at(car, load, level);
}

static void ride(int level, int load)
{
    struct car car = {0};
    freight(&car, level, load);
    move(&car);
    printf("%s %d\n", names[car.at.level], car.at.load);
}

int main(void)
{
    char what;
    int one, other;
    if (scanf("%c %d %d", &what, &one, &other) != 3)
        return 1;
    switch (what) {
    case 'f':
        fill(one, other);
        break;
    case 'd':
        draw(one, other);
        break;
    case 'r':
        ride(one, other);
        break;
    }
    return 0;
}
