/* A list of records. The bug: when the last record is removed, the list loses its tail. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct node { char name[16]; struct node *next; };
struct list { struct node *head, *tail; int count; };

static struct list *make(void)
{
    struct list *l = malloc(sizeof *l);
    l->head = l->tail = NULL;
    l->count = 0;
    return l;
}

static void append(struct list *l, const char *name)
{
    struct node *n = malloc(sizeof *n);
    strncpy(n->name, name, 15);
    n->name[15] = 0;
    n->next = NULL;
    if (l->head == NULL)
        l->head = n;
    else
        l->tail->next = n;
    l->tail = n;
    l->count++;
}

static void drop(struct list *l, const char *name)
{
    struct node **p = &l->head;
    while (*p && strcmp((*p)->name, name) != 0)
        p = &(*p)->next;
    if (*p) {
        struct node *n = *p;
        *p = n->next;
        if (l->tail == n)
            l->tail = NULL;
        free(n);
        l->count--;
    }
}

int main(int argc, char **argv)
{
    char line[64] = "";
    struct list *list = make();
    FILE *f = argc > 1 ? fopen(argv[1], "r") : stdin;
    if (!f)
        return 2;
    while (fgets(line, sizeof line, f)) {
        line[strcspn(line, "\n")] = 0;
        if (line[0] == '+')
            append(list, line + 1);
        else if (line[0] == '-')
            drop(list, line + 1);
        else
            printf("ignored %s\n", line);
    }
    for (struct node *n = list->head; n; n = n->next)
        printf("%s\n", n->name);
    return 0;
}
