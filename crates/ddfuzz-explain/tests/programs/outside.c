/* Reads outside of arrays, each by another command, and reads that are meant. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct place {
    char name[8];
    int *visits;
    int id;
};

static const char *kinds[4] = {"none", "some", "many", "all"};
static long after[2] = {3, 5};
static int visits[8];
static struct place places[4];
static int grid[3][4] = {{9, 9, 9, 9}, {9, 9, 9, 9}, {9, 9, 9, 9}};

static int word(int kind)
{
    const char *it = kinds[kind];
    return strlen(it) + after[0];
}

static int shared(int day)
{
    struct {
        int parts[5];
        int none[3];
    } of = {{1, 2, 3, 4, 5}, {0, 0, 0}};
    int by = of.parts[day];
    return 60 / by;
}

/* Much is executed before the read. */
static int late(int kind)
{
    unsigned sum = 0;
    for (int i = 0; i < 30000; i++)
        sum = sum * 31 + kinds[i % 4][0];
    return (sum & 1) + shared(1) + shared(kind);
}

static int *tail(int count)
{
    int **all = malloc(5 * sizeof *all);
    for (int i = 0; i < 5; i++)
        all[i] = &visits[i];
    int *last = NULL;
    for (int i = 0; i < count; i++)
        last = all[i];
    return last;
}

static void named(struct place *it, const char *name, int id)
{
    strncpy(it->name, name, sizeof it->name); /* no room for an end */
    it->visits = &visits[1];
    it->id = id;
}

static int shown(struct place *it)
{
    char text[40];
    int length = sprintf(text, "<%s>", it->name);
    if (length > 10)
        abort();
    return length;
}

static int walked(struct place *it)
{
    int length = 0;
    for (const char *p = it->name; *p; p++)
        length++;
    if (length > 8)
        abort();
    return length;
}

/* Rows that lie one behind the other are read as one. */
static int flat(int kind)
{
    int *all = grid[0], sum = 0;
    for (int i = 0; i < 12; i++)
        sum += all[i];
    return 60 / (kind < 5 ? sum : sum - 108);
}

/* A name without an end is no text where its length is given. */
static int bounded(int kind)
{
    char text[40];
    int length = sprintf(text, "%.8s", places[0].name);
    if (kind >= 5 && length == 8)
        abort();
    return length;
}

int main(void)
{
    char command, name[16];
    int kind;
    if (scanf("%c %d %15s", &command, &kind, name) != 3)
        return 2;
    named(&places[0], name, 1);
    int found = 0;
    switch (command) {
    case 'k': found = word(1) + word(kind); break;
    case 'd': found = shared(1) + shared(kind); break;
    case 'l': found = late(kind); break;
    case 't': found = *tail(kind); break;
    case 's': found = shown(&places[0]); break;
    case 'w': found = walked(&places[0]); break;
    case 'f': found = flat(kind); break;
    case 'b': found = bounded(kind); break;
    }
    printf("%d\n", found);
    return 0;
}
