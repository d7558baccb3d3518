/* Keeps numbers by their names; one that is set again is lost. */
#include <stdio.h>
#include <string.h>

struct number {
    char name[8];
    int value;
};

static struct number all[16];
static int count, lines;

static struct number *find(const char *name)
{
    for (int i = 0; i < count; i++)
        if (strcmp(all[i].name, name) == 0)
            return &all[i];
    return NULL;
}

static void set(const char *name, int value)
{
    struct number *old = find(name);
    lines++;
    if (old) {
        old->value = lines; /* not value */
        return;
    }
    struct number *new = &all[count++];
    strcpy(new->name, name);
    new->value = value;
}

int main(void)
{
    char name[8];
    int value;
    while (count < 16 && scanf("%7s %d", name, &value) == 2)
        set(name, value);
    for (int i = 0; i < count; i++)
        printf("%s %d\n", all[i].name, all[i].value);
    return 0;
}
