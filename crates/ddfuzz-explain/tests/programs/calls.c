/* Calls in calls, some of which do not matter. */
#include <stdio.h>

int total, noise;

static void count(int by)
{
    noise += by;
    total += by;
    noise ^= 1;
}

static int twice(int value)
{
    int result = 0;
    noise++;
    count(1);
    result = value * 2;
    return result;
}

int main(void)
{
    int value = 3;
    noise = twice(1);
    value = twice(value) + twice(1);
    noise = 7;
    count(2);
    printf("value = %d\n", value);
    printf("total = %d\n", total);
    return 0;
}
