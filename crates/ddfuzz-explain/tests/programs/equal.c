/* The sum of prices: a price of nothing leaves the sum as it is, by the statement that adds it. */
#include <stdio.h>
#include <stdlib.h>

static int __attribute__((noinline)) price(int letter)
{
    if (letter == 'b')
        return 0;
    return letter;
}

int main(void)
{
    FILE *list = fdopen(0, "r");
    int total = 0;
    int letter;
    while ((letter = getc(list)) != EOF && letter != '\n')
        total += price(letter);
    if (total == 0)
        abort();
    printf("%d\n", total);
    return 0;
}
