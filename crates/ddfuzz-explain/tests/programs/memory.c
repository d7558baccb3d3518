/* Reads a command a line: "p WORD" puts a word on a list, "d" drops the first one, "l" prints the last. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct node {
    char *word;
    struct node *next;
};

static struct node *first, *last;

static char *copied(const char *text, int is_long)
{
    size_t length = strlen(text);
    char *copy = malloc(is_long ? 24 : length + 1);
    strcpy(copy, text);
    return copy;
}

static void put(const char *text)
{
    struct node *new = malloc(sizeof *new);
    new->word = copied(text, text[0] == 'L');
    new->next = NULL;
    if (last != NULL)
        last->next = new;
    else
        first = new;
    last = new;
}

static void drop(void)
{
    struct node *old = first;
    first = old->next;
    free(old->word);
    free(old);
    if (first == NULL && old->word != NULL)
        return;
    last = first == NULL ? NULL : last;
}

static int digit(int c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    return c - 'a' + 11;
}

static int number(const char *text)
{
    int value = digit(text[0]) * 16;
    value += digit(text[1]);
    return value;
}

int main(void)
{
    char line[256];
    while (fgets(line, sizeof line, stdin)) {
        line[strcspn(line, "\n")] = 0;
        if (line[0] == 'p')
            put(line + 2);
        else if (line[0] == 'd')
            drop();
        else if (line[0] == 'l')
            printf("last %s\n", last->word);
        else if (line[0] == 'x') {
            int value = number(line + 2);
            if (value > 200)
                printf("large\n");
            printf("value %d\n", value);
        }
    }
    return 0;
}
