// Notes: "o" begins one, "a" adds a word, "e" ends it. "c" ends it as well, but leaves it marked as
// open: a later "a" follows a null pointer. "m" prints the mean length, "z" forgets the words before.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct note {
    int words;
    int letters;
};

static struct note *current;
static int is_open;

static void drop(void)
{
    free(current);
    current = NULL;
}

static void begin(void)
{
    current = calloc(1, sizeof *current);
    is_open = 1;
}

static void end(void)
{
    drop();
    is_open = 0;
}

static void cancel(void)
{
    drop();
}

static void add(const char *word)
{
    if (!is_open)
        return;
    current->words++;
    current->letters += strlen(word);
}

static void forget(struct note *note)
{
    note->words = 0;
}

static int mean(struct note *note)
{
    return note->letters / note->words;
}

int main(void)
{
    char line[80];
    while (fgets(line, sizeof line, stdin)) {
        line[strcspn(line, "\n")] = 0;
        switch (line[0]) {
        case 'o':
            begin();
            break;
        case 'a':
            add(line + 1);
            break;
        case 'e':
            end();
            break;
        case 'c':
            cancel();
            break;
        case 'z':
            forget(current);
            break;
        case 'm':
            printf("%d\n", mean(current));
            break;
        }
    }
    return 0;
}
