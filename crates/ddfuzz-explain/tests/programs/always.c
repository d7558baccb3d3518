/* Fails on each input, after a loop of many statements. */
#include <stddef.h>

int main(void)
{
    volatile int sum = 0;
    int *place = NULL;

    for (int i = 0; i < 3000; i++)
        sum += i;
    *place = sum;
    return 0;
}
