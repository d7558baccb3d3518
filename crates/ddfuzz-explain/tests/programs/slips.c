/* Mistakes whose place the crash does not show: memory that nobody sets, a missing statement in one of
 * two branches or in one of two functions, an index that leads out of a block, a remainder that is negative. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct note {
    char *text;
    int size;
};

static int teams[8] = {3, 1, 4, 1, 5, 9, 2, 6};
static int waiting;
static char *words[4];

static struct note *fresh(int size)
{
    struct note *note = malloc(sizeof *note);
    note->size = size; /* but not its text */
    return note;
}

static int shown(struct note *note)
{
    return note->size > 3 ? note->text[0] : 0;
}

static void unset_block(int size)
{
    unsigned long *other = malloc(sizeof(struct note));
    memset(other, 'x', sizeof(struct note));
    struct note *note;
    other[0] = 77;
    free(other);
    note = fresh(size);
    note->text = size > 3 ? note->text : "none";
    printf("%d\n", shown(note));
}

static void fill(int with)
{
    volatile long local[16];
    for (int i = 0; i < 16; i++)
        local[i] = with;
}

static int pick(int size)
{
    char *chosen[8];
    if (size < 4)
        chosen[3] = "abc";
    return chosen[3][0];
}

static int turn(int from, int by)
{
    int left = from - by;
    return left % 8;
}

static int team(int from, int by)
{
    int place = turn(from, by);
    return teams[place * 100000000L];
}

static void leave(int size)
{
    if (size < 4) {
        printf("first\n");
        waiting--;
    } else {
        printf("later\n");
        words[2] = NULL;
    }
}

static int serve(int size)
{
    waiting = 3;
    leave(size);
    int sum = 0;
    for (int i = 0; i < waiting; i++)
        sum += words[i][0];
    return sum;
}

static int rank(int percent, int count)
{
    return percent * count / 100;
}

static int ranked(int percent)
{
    char **all = calloc(64, sizeof *all);
    for (int i = 0; i < 9; i++)
        all[i] = "word";
    int at = rank(percent * 10, 10);
    return all[at][0];
}

struct account {
    int holds;
    int held; /* five for each hold */
};

static void release(struct account *account)
{
    account->holds--;
    account->held -= 5;
}

static void settle(struct account *account)
{
    printf("settled\n");
    account->holds--; /* but not what is held */
}

static int settled(int size)
{
    static struct account account = {2, 10};
    if (size < 4)
        release(&account);
    else
        settle(&account);
    if (account.held != account.holds * 5)
        abort();
    return account.holds;
}

int main(void)
{
    char kind;
    int size;
    if (scanf(" %c %d", &kind, &size) != 2)
        return 2;
    words[0] = words[1] = words[2] = "w";
    switch (kind) {
    case 'u': unset_block(size); break;
    case 'k': fill(size); printf("%d\n", pick(size)); break;
    case 't': printf("%d\n", team(3, size)); break;
    case 'm': printf("%d\n", serve(size)); break;
    case 's': printf("%d\n", settled(size)); break;
    case 'o': printf("%d\n", ranked(size)); break;
    }
    return 0;
}
