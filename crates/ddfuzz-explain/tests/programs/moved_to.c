/* Moves amounts from one account to another. */
#include <stdio.h>
#include <string.h>

struct account {
    char name[8];
    long balance;
    int count;
};

static struct account all[8];
static int known;
static long moved;

__attribute__((noipa)) static struct account *account(const char *name)
{
    for (int i = 0; i < known; i++)
        if (strcmp(all[i].name, name) == 0)
            return &all[i];
    strcpy(all[known].name, name);
    return &all[known++];
}

__attribute__((noipa)) static void post(struct account *to, long amount)
{
    to->balance += amount;
    to->count++;
}

__attribute__((noipa)) static long fee(long amount, long day, long rate, long least)
{
    long made = amount * rate / 100 + day / 30;
    return made < least ? least : made;
}

__attribute__((noipa)) static void transfer(struct account *from, struct account *to, long amount)
{
    post(from, -amount);
    moved += fee(amount, 1, 1, 0) + fee(moved, 2, 2, 0);
    post(from, amount); /* not to */
    moved += fee(amount, 3, 1, 0) + fee(moved, 4, 2, 0);
    to->count++;
}

int main(void)
{
    char from[8], to[8];
    long amount;
    while (known < 7 && scanf("%7s %7s %ld", from, to, &amount) == 3)
        transfer(account(from), account(to), amount);
    for (int i = 0; i < known; i++)
        printf("%s %ld\n", all[i].name, all[i].balance);
    return 0;
}
