/* Words in a ring: "a N" goes N places on and counts there, "n" says how often the place was counted. One place more
   is taken for a part of the ring than there are. */
#include <stdio.h>
#include <stdlib.h>

#define PLACES 4

static int counts[PLACES];
static int *ring[PLACES + 4];
static int at;

static void go(int steps)
{
    int last = PLACES;
    at = at + steps;
    while (at > last)
        at = at - PLACES;
    ++*ring[at];
}

int main(void)
{
    char line[16];
    for (int i = 0; i < PLACES; i++)
        ring[i] = &counts[i];
    while (fgets(line, sizeof line, stdin)) {
        if (line[0] == 'a')
            go(atoi(line + 2));
        else if (line[0] == 'n')
            printf("%d\n", *ring[at]);
    }
    return 0;
}
