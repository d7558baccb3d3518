/* A divisor that stands in a table from the start: the index by which it is read is wrong. */
#include <stdio.h>

static long fee(long amount, int tier)
{
    static const int rates[] = {0, 10, 25, 50};
    return amount / rates[tier % 4];
}

int main(void)
{
    int tier = 1;
    long charged = 0;
    for (int letter = getchar(); letter != EOF; letter = getchar()) {
        if (letter >= '0' && letter <= '9')
            tier = letter - '0';
        if (letter == 'p')
            charged += fee(100, tier);
    }
    printf("%ld\n", charged);
    return 0;
}
