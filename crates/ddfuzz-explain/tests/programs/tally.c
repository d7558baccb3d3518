// Counts words; "^" counts the last one again. A pointer to that one is kept while the array grows, so
// that "^" after a fifth word counts in memory that is no longer part of the array.
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct word {
    char *text;
    int count;
};

static struct word *words;
static int used, room;

static struct word *find(const char *text)
{
    for (int i = 0; i < used; i++)
        if (strcmp(words[i].text, text) == 0)
            return &words[i];
    return NULL;
}

static struct word *add(const char *text)
{
    if (used == room) {
        room = room ? room * 2 : 4;
        words = realloc(words, room * sizeof *words);
    }
    struct word *word = &words[used++];
    word->text = strdup(text);
    word->count = 0;
    return word;
}

int main(void)
{
    char line[80];
    int all = 0, sum = 0;
    struct word *last = NULL;
    while (fgets(line, sizeof line, stdin)) {
        for (char *text = strtok(line, " \n"); text; text = strtok(NULL, " \n")) {
            struct word *word = last;
            if (strcmp(text, "^") != 0) {
                word = find(text);
                if (word == NULL)
                    word = add(text);
                if (last == NULL)
                    last = word;
            }
            word->count++;
            all++;
        }
    }
    for (int i = 0; i < used; i++)
        sum += words[i].count;
    assert(sum == all);
    printf("%d\n", sum);
    return 0;
}
