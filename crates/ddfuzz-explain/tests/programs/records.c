/* Sums of records, a line each: name:count. A negative count leaves out the values. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct record {
    char name[16];
    int count;
    int *values;
};

static int parse(const char *line, struct record *r)
{
    int length = 0;
    while (*line && *line != ':' && length < 15)
        r->name[length++] = *line++;
    if (*line != ':')
        return 0;
    r->count = atoi(line + 1);
    if (r->count > 8)
        r->count = 8;
    return 1;
}

static int sum(struct record *r)
{
    int total = 0;
    int *values = malloc(8 * sizeof *values);
    if (r->count >= 0)
        r->values = values;
    for (int i = 0; i < 8; i++)
        values[i] = i;
    for (int i = 0; i != r->count && i < 8; i++)
        total += r->values[i];
    return total;
}

int main(void)
{
    static char text[4096];
    struct record r;
    text[fread(text, 1, sizeof text - 1, stdin)] = 0;
    for (char *line = strtok(text, "\n"); line; line = strtok(NULL, "\n")) {
        memset(&r, 0, sizeof r);
        if (parse(line, &r))
            printf("%s %d\n", r.name, sum(&r));
    }
    return 0;
}
