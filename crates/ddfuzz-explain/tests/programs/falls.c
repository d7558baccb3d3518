/* A machine with a stack: after a product, the next case is executed as well. */
#include <assert.h>
#include <stdio.h>
#include <string.h>

struct machine {
    int stack[8];
    int used;
};

static void push(struct machine *m, int value)
{
    m->stack[m->used++] = value;
}

static int pop(struct machine *m)
{
    return m->stack[--m->used];
}

static void step(struct machine *m, char op)
{
    int a, b;
    switch (op) {
    case '+':
        b = pop(m);
        a = pop(m);
        push(m, a + b);
        break;
    case '*':
        b = pop(m);
        a = pop(m);
        push(m, a * b);
    case 'd':
        a = pop(m);
        push(m, a);
        push(m, a);
        break;
    default:
        if (op >= '0' && op <= '9')
            push(m, op - '0');
    }
}

int main(void)
{
    struct machine m;
    int c;
    memset(&m, 0, sizeof m);
    while ((c = getchar()) != EOF && c != '\n')
        step(&m, c);
    assert(m.used <= 1);
    printf("%d\n", m.stack[0]);
    return 0;
}
