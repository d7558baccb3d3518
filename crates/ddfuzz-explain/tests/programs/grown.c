/* Reads letters and numbers them. The table of letters grows while a pointer into it is kept. */
#include <stdio.h>
#include <stdlib.h>

struct letter {
    int next;
    char text;
};

static struct letter *all;
static int count, room;

static int fresh(char text)
{
    if (count == room) {
        room += 4;
        all = realloc(all, room * sizeof *all);
    }
    all[count].next = -1;
    all[count].text = text;
    return count++;
}

static void follow(int before, char text)
{
    struct letter *it = &all[before];
    int next = fresh(text);
    it->next = next;
}

int main(void)
{
    int before = fresh('^'), letter, seen = 0;
    while ((letter = getchar()) >= 'a') {
        follow(before, letter);
        before = count - 1;
    }
    for (int at = 0; seen < count; seen++, at = all[at].next)
        if (at < 0)
            abort();
    printf("%d\n", seen);
    return 0;
}
