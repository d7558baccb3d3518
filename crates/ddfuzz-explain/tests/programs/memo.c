/* A queue of names, and the item that was found last. "p NAME" appends a name, "o" removes the first one,
   "g NAME" looks one up. What was found last is forgotten for the wrong item when one is removed. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct item {
    const char *name;
    struct item *next;
};

static struct item *first, *last, *memo, *unused;

static void append(const char *name)
{
    struct item *it = unused;
    if (it)
        unused = it->next;
    else
        it = malloc(sizeof *it);
    it->name = strdup(name);
    it->next = NULL;
    if (last)
        last->next = it;
    else
        first = it;
    last = it;
}

static void take(void)
{
    struct item *it = first;
    if (!it)
        return;
    first = it->next;
    if (!first)
        last = NULL;
    if (memo == first)
        memo = NULL;
    it->name = NULL;
    it->next = unused;
    unused = it;
}

static struct item *find(const char *name)
{
    if (memo && strcmp(memo->name, name) == 0)
        return memo;
    for (struct item *it = first; it; it = it->next)
        if (strcmp(it->name, name) == 0)
            return memo = it;
    return NULL;
}

int main(void)
{
    char line[64], name[32];
    while (fgets(line, sizeof line, stdin)) {
        if (sscanf(line, "p %31s", name) == 1)
            append(name);
        else if (sscanf(line, "g %31s", name) == 1)
            printf("%s\n", find(name) ? "found" : "none");
        else if (line[0] == 'o')
            take();
    }
    return 0;
}
