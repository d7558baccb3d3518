/* Entries in a table by their keys, in a block that grows: a key that is changed too early, an entry that
 * does not get an owner, and a sum that is added to where the block was. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct owner {
    int id;
};

struct entry {
    int key;
    int value;
    struct owner *owner;
    struct entry *next;
};

static struct entry *slots[8];
static struct entry *all[8];
static int count;
static struct owner us = {7};
static int *history;
static int used, room;

static struct entry *add(int key)
{
    struct entry *it = malloc(sizeof *it);

    it->key = key;
    it->value = 10 * key;
    it->owner = NULL;
    it->next = slots[it->key % 8];
    slots[it->key % 8] = it;
    all[count++] = it;
    return it;
}

static void take_out(struct entry *it)
{
    struct entry **at = &slots[it->key % 8];

    while (*at && *at != it)
        at = &(*at)->next;
    if (*at)
        *at = it->next;
}

static void move(struct entry *it, int key)
{
    it->key = key;
    take_out(it);
    it->next = slots[key % 8];
    slots[key % 8] = it;
}

static void drop(struct entry *it)
{
    take_out(it);
    memset(it, 0x55, sizeof *it);
    free(it);
}

static void own(int most)
{
    int i;

    for (i = 0; i < count && i < most; i++)
        all[i]->owner = &us;
}

static int sum(void)
{
    int i, found = 0;

    for (i = 0; i < 8; i++) {
        struct entry *it;
        for (it = slots[i]; it; it = it->next)
            found += it->value;
    }
    return found;
}

static int owners(void)
{
    int i, found = 0;

    for (i = 0; i < count; i++)
        found += all[i]->owner->id;
    return found;
}

static int *grown(void)
{
    int *more = malloc(2 * room * sizeof *more);

    memcpy(more, history, used * sizeof *more);
    free(history);
    history = more;
    room *= 2;
    return history;
}

static void note(int value)
{
    int *total = &history[0];

    if (used == room)
        grown();
    history[used++] = value;
    *total += value;
}

int main(void)
{
    char line[32];
    int number;

    room = 4;
    history = malloc(room * sizeof *history);
    history[used++] = 0;
    while (fgets(line, sizeof line, stdin)) {
        number = atoi(line + 1);
        switch (line[0]) {
        case 'a':
            add(number);
            break;
        case 'm':
            move(all[0], number);
            break;
        case 'd':
            drop(all[0]);
            break;
        case 'o':
            own(number);
            break;
        case 's':
            printf("%d\n", sum());
            break;
        case 'i':
            printf("%d\n", owners());
            break;
        case 'n':
            note(number);
            break;
        case 'c':
            if (history[0] != number)
                abort();
            break;
        }
    }
    return 0;
}
