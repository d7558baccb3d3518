/* Items of which one is chosen. Dropping an item forgets that it may be the chosen one. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct item {
    char name[16];
    struct item *next;
};

struct memo {
    char text[24];
};

static struct memo *memo;
static struct item *first, *chosen;

static struct item *find(const char *name) {
    struct item *it = first;
    while (it && strcmp(it->name, name) != 0)
        it = it->next;
    return it;
}

static void add(const char *name) {
    struct item *it = malloc(sizeof *it);
    strcpy(it->name, name);
    it->next = first;
    first = it;
}

static void drop(const char *name) {
    struct item *it = find(name);
    struct item **from = &first;
    if (!it)
        return;
    while (*from != it)
        from = &(*from)->next;
    *from = it->next;
    free(it);
}

static void note(const char *text) {
    memo = malloc(sizeof *memo);
    strcpy(memo->text, text);
}

int main(void) {
    char line[64];
    while (fgets(line, sizeof line, stdin)) {
        line[strcspn(line, "\n")] = 0;
        switch (line[0]) {
        case '+': add(line + 1); break;
        case '.': chosen = find(line + 1); break;
        case '-': drop(line + 1); break;
        case '#': note(line + 1); break;
        case '>':
            chosen = chosen->next;
            printf("%s\n", chosen->name);
        }
    }
    return 0;
}
