/* Sums of samples, one number a line: 'w N' sets the weight, 'b N' counts in bucket N, 's N' marks bit N. */
#include <stdio.h>
#include <stdlib.h>

static int total, weight = 1;
static int buckets[32];
static unsigned mask;

static void add(int n)
{
    total += n * weight; /* too large */
}

static void count(int bucket)
{
    buckets[bucket]++; /* not there */
}

static void mark(int bit)
{
    mask |= 1u << bit; /* no such bit */
}

int main(void)
{
    char line[64];
    while (fgets(line, sizeof line, stdin)) {
        if (line[0] == 'w')
            weight = atoi(line + 1);
        else if (line[0] == 'b')
            count(atoi(line + 1));
        else if (line[0] == 's')
            mark(atoi(line + 1));
        else
            add(atoi(line));
    }
    printf("%d %d %u\n", total, buckets[0], mask);
    return 0;
}
