/* Adds prices, each with its discount. The bug: the discount is taken off after the price is added. */
#include <stdio.h>

struct bill {
    int items;
    int total;
    int paid;
};

static void buy(struct bill *bill, int price, int discount)
{
    bill->items++;
    bill->total += price;
    price -= discount;
    bill->paid += price;
}

int main(int argc, char **argv)
{
    struct bill bill = {0, 0, 0};
    int price, discount;
    FILE *file = fopen(argv[argc - 1], "r");
    if (!file)
        return 1;
    while (fscanf(file, "%d %d", &price, &discount) == 2)
        buy(&bill, price, discount);
    printf("%d items, %d paid\n", bill.items, bill.paid);
    if (bill.total != bill.paid)
        printf("differs\n");
    return 0;
}
