/* A stack machine. The bug: the fifth push overwrites the pointer to the output function. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct machine {
    long stack[4];
    void (*emit)(long);
    int depth;
};

static void emit_decimal(long value)
{
    printf("%ld\n", value);
}

static void push(struct machine *m, long value)
{
    m->stack[m->depth] = value;
    m->depth++;
}

static long pop(struct machine *m)
{
    if (m->depth == 0) {
        fprintf(stderr, "empty\n");
        exit(1);
    }
    m->depth--;
    return m->stack[m->depth];
}

static void execute(struct machine *m, char *line)
{
    char *word = strtok(line, " \n");
    while (word) {
        if (strcmp(word, "+") == 0) {
            long b = pop(m);
            long a = pop(m);
            push(m, a + b);
        } else if (strcmp(word, "drop") == 0) {
            pop(m);
        } else if (strcmp(word, "print") == 0) {
            m->emit(pop(m));
        } else {
            push(m, atol(word));
        }
        word = strtok(NULL, " \n");
    }
}

int main(void)
{
    struct machine m;
    char line[256] = "";

    memset(&m, 0, sizeof m);
    m.emit = emit_decimal;
    while (fgets(line, sizeof line, stdin))
        execute(&m, line);
    return 0;
}
