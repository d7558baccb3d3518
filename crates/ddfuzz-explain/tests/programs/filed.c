/* Records that are filed by their numbers. "a ID NAME" adds one, "r OLD NEW" gives one another number, which is set
   too early; "u ID" gives one the next number of its list; "d ID" removes one, "w" clears all names by mistake,
   "g ID NAME" compares the names in a list. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LISTS = 4 };

struct record {
    unsigned id;
    char *name;
    struct record *next;
};

static struct record *lists[LISTS];

static void file(struct record *it)
{
    it->next = lists[it->id % LISTS];
    lists[it->id % LISTS] = it;
}

static void unfile(struct record *it)
{
    struct record **place = &lists[it->id % LISTS];
    while (*place && *place != it)
        place = &(*place)->next;
    if (*place)
        *place = it->next;
}

static struct record *find(unsigned id)
{
    struct record *it = lists[id % LISTS];
    while (it && it->id != id)
        it = it->next;
    return it;
}

static void add(unsigned id, const char *name)
{
    struct record *it = malloc(sizeof *it);
    it->id = id;
    it->name = strdup(name);
    file(it);
}

static void renumber(struct record *it, unsigned id)
{
    it->id = id;
    unfile(it);
    file(it);
}

static int has(unsigned id, const char *name)
{
    for (struct record *it = lists[id % LISTS]; it; it = it->next)
        if (strcmp(it->name, name) == 0)
            return 1;
    return 0;
}

int main(void)
{
    char line[64], name[32];
    unsigned id, other;
    struct record *it;
    while (fgets(line, sizeof line, stdin)) {
        if (sscanf(line, "a %u %31s", &id, name) == 2)
            add(id, name);
        else if (sscanf(line, "r %u %u", &id, &other) == 2 && (it = find(id)))
            renumber(it, other);
        else if (sscanf(line, "u %u", &id) == 1 && (it = find(id)))
            it->id += LISTS;
        else if (sscanf(line, "d %u", &id) == 1 && (it = find(id))) {
            unfile(it);
            it->name = NULL;
        } else if (sscanf(line, "g %u %31s", &id, name) == 2)
            printf("%d\n", has(id, name));
        else if (line[0] == 'w')
            for (int list = 0; list < LISTS; list++)
                for (it = lists[list]; it; it = it->next)
                    it->name = NULL;
    }
    return 0;
}
