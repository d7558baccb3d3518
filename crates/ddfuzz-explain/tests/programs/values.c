/* Variables of all kinds, for comparing their values with those that gdb shows. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum color { RED, GREEN = 5, BLUE = -3 };
typedef int (*operation)(int, int);

struct flags {
    unsigned int ready : 1;
    unsigned int mode : 3;
    int level : 5;
    unsigned long wide : 40;
};

struct inner {
    short x, y;
    union {
        int number;
        unsigned char bytes[4];
    };
    enum color color;
};

struct outer {
    char name[12];
    struct inner inner;
    struct inner many[2];
    struct flags flags;
    struct outer *next;
    double ratio;
};

static int counter = 3;
static struct outer table[2];
long double precise = 2.5L;
unsigned char grid[2][3] = {{1, 2, 3}, {4, 5, 6}};
int numbers[2][2][2] = {{{1, 2}, {3, 4}}, {{5, 6}, {7, 8}}};
_Thread_local int own = 77;

static int add(int a, int b)
{
    static int calls = 10;
    calls++;
    own += a;
    return a + b + calls;
}

static int subtract(int a, int b)
{
    return a - b;
}

static double weigh(struct outer *it, float factor, const long *values, int count)
{
    double sum = 0;
    for (int i = 0; i < count; i++) {
        double part = values[i] * factor;
        sum += part;
    }
    it->ratio = sum;
    return sum;
}

static int nested(int depth, struct outer *it, operation operate)
{
    int value = depth * 3;
    it->inner.x = (short)depth;
    if (depth > 0) {
        int value = operate(depth, counter);
        it->inner.number += value;
        value += nested(depth - 1, it, operate);
        return value;
    }
    it->flags.level = -7;
    it->flags.wide = 0x123456789aUL;
    return value;
}

int main(void)
{
    struct outer *first = &table[0];
    operation operate = add;
    long values[3] = {10, -20, 30};
    char letter = 'q';
    _Bool truth = 1;
    unsigned long long large = 0xfedcba9876543210ULL;
    float small = 0.25f;

    strcpy(first->name, "first");
    first->next = &table[1];
    first->inner.color = BLUE;
    first->flags.ready = 1;
    first->flags.mode = 5;
    first->many[1].y = -2;
    table[1].next = calloc(1, sizeof(struct outer));
    table[1].next->inner.color = GREEN;
    counter = nested(2, first, operate);
    operate = subtract;
    counter += nested(1, table[1].next, operate);
    large += (unsigned long long)weigh(first, small, values, 3);
    precise *= 2;
    printf("%d %llu %c %d %f %Lf %d\n", counter, large, letter, truth, small, precise, own);
    if (grid[1][1] == 5)
        *(volatile int *)0 = numbers[1][0][1];
    return 0;
}
