/* Variables with less usual types and places, for comparing their values with those that gdb shows. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

enum kind { NUMBER, TEXT, PAIR };

struct __attribute__((packed)) head {
    uint8_t version;
    uint32_t length;
    uint16_t port : 10, flag : 1, rest : 5;
};

struct value {
    enum kind kind;
    union {
        long number;
        const char *text;
        struct {
            struct value *left, *right;
        } pair;
    };
};

struct table {
    unsigned count;
    int (*compare)(const void *, const void *);
    struct value *rows[3];
    int matrix[2][3];
    int64_t items[];
};

static long depths[4];
const char *names[] = {"one", "two", NULL};
volatile int shared = 9;

static int order(const void *a, const void *b)
{
    const int left = *(const int *)a, right = *(const int *)b;
    return (left > right) - (left < right);
}

static long sum(const struct value *it, int depth)
{
    static unsigned calls;
    long total = 0;
    calls++;
    depths[depth & 3]++;
    switch (it->kind) {
    case NUMBER:
        total = it->number;
        break;
    case TEXT:
        for (const char *at = it->text; *at; at++)
            total += (unsigned char)*at;
        break;
    case PAIR: {
        long left = sum(it->pair.left, depth + 1);
        long right = sum(it->pair.right, depth + 1);
        total = left * 2 + right;
        break;
    }
    }
    return total + (long)calls;
}

static double mean(int count, const int values[])
{
    double sums[count];
    float last = 0;
    for (int i = 0; i < count; i++) {
        sums[i] = (i ? sums[i - 1] : 0) + values[i];
        last = (float)sums[i];
    }
    return last / count;
}

int main(void)
{
    struct head head = {.version = 4, .length = 0x01020304, .port = 443, .flag = 1, .rest = 21};
    struct value one = {NUMBER, {.number = -5}}, text = {TEXT, {.text = "xyz"}};
    struct value pair = {PAIR, {.pair = {&one, &text}}};
    struct table *table = calloc(1, sizeof *table + 3 * sizeof(int64_t));
    int numbers[5] = {5, -3, 8, 1, 0};
    unsigned short small = 65535;
    signed char letter = -100;
    _Bool is_sorted;

    table->compare = order;
    table->count = 3;
    for (unsigned i = 0; i < table->count; i++) {
        table->items[i] = (int64_t)i << 40;
        table->matrix[i & 1][i] = (int)i - 7;
    }
    table->rows[1] = &pair;
    qsort(numbers, 5, sizeof numbers[0], table->compare);
    is_sorted = numbers[0] <= numbers[1];
    head.length += (uint32_t)sum(table->rows[1], 0);
    head.flag = 0;
    letter += small & 7;
    shared += (int)mean(5, numbers);
    printf("%u %u %d %d %s %d\n", head.length, head.rest, letter, is_sorted, names[1], shared);
    free(table);
    return 0;
}
