/* Blocks that are used after they were freed: with their parts by a called function, in a loop, or by realloc.
   The first character of a line says what to do; the last one is used by '?'. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct note { char *text; int seen; struct note *below; };

static struct note *top, *last;
static int *numbers, *kept;
static int count;

static void release(struct note *note)
{
    free(note->text);
    free(note); /* the note */
}

static void take_off(void)
{
    struct note *note = top;
    if (note) {
        top = note->below;
        release(note);
    }
}

static void take_off_all(void)
{
    while (top) {
        struct note *next = top->below;
        free(top->text);
        free(top); /* each note */
        top = next;
    }
}

static void add_number(int number)
{
    numbers = realloc(numbers, (count + 1) * sizeof *numbers); /* moved */
    numbers[count++] = number;
}

int main(void)
{
    char line[64];
    while (fgets(line, sizeof line, stdin)) {
        switch (line[0]) {
        case '+':
            last = calloc(1, sizeof *last);
            last->text = strdup(line);
            last->below = top;
            top = last;
            break;
        case '-':
            take_off();
            break;
        case '=':
            take_off_all();
            break;
        case '#':
            add_number(atoi(line + 1));
            break;
        case '*':
            kept = numbers;
            break;
        case '?':
            if (last) {
                last->seen++; /* used */
                printf("%d %s", last->seen, last->text);
            }
            break;
        case '!':
            printf("%d\n", kept[0]); /* read */
            break;
        }
    }
    return 0;
}
