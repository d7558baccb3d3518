/* Keeps a name and the length of a text, and copies the text. The bug: a name of nine or more letters
   overwrites the length. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct record {
    char name[8];
    unsigned int length;
};

static void name_it(struct record *record, const char *name)
{
    for (int at = 0; name[at] && name[at] != '\n'; at++)
        record->name[at] = name[at];
}

static char *copied(const struct record *record, const char *text)
{
    char *copy = malloc(record->length);
    if (!copy)
        return NULL;
    memcpy(copy, text, record->length);
    return copy;
}

int main(void)
{
    char line[64], *text = strdup("some text");
    struct record record = {"", 9};
    while (fgets(line, sizeof line, stdin)) {
        if (line[0] == 'n')
            name_it(&record, line + 2);
        else
            printf("%.9s\n", copied(&record, text));
    }
    return 0;
}
