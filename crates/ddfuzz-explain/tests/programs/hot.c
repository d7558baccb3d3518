/* Walks a list very often. Only the last walk goes on to the pointer that the input has spoiled, in
   statements that were executed thousands of times before. */
#include <stdio.h>

struct node {
    struct node *next;
    int value;
};

static struct node nodes[4];

static void fill(int letter)
{
    for (int i = 0; i < 3; i++)
        nodes[i].next = &nodes[i + 1];
    if (letter == 'b')
        nodes[2].next = (struct node *)8;
}

static int walk(struct node *from, int count)
{
    int sum = 0;
    for (struct node *it = from; count > 0; it = it->next) {
        sum += it->value;
        count--;
    }
    return sum;
}

static int total(int count)
{
    return walk(nodes, count) + 1;
}

int main(void)
{
    long sum = 0;
    fill(getchar());
    for (int i = 0; i < 2002; i++) {
        if (i % 2 == 0)
            sum += total(2);
        else
            sum -= total(i < 2001 ? 3 : 4);
    }
    printf("%ld\n", sum);
    return 0;
}
