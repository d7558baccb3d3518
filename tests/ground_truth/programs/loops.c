/* A parser of many sections that does not always come to an end, or not within its memory. */
#define _GNU_SOURCE
#include "ground.h"
#include <time.h>

typedef struct state { const char *at; long steps; long sum; } state;
typedef void step(state *, int);
struct chunk { struct chunk *next; char data[4000]; };
static struct chunk *chunks;

/* Forgets to go on at a byte that it does not know. */
static __attribute__((noinline)) long count_digits(const char *text)
{
    long count = 0;
    while (*text) {
        if (*text >= '0' && *text <= '9') {
            text++;
            count++;
        } else if (*text == ' ')
            text++;
        else if (*text == '!')
            canary("digits-stand-still"), text = "?";
    }
    return count;
}

static __attribute__((noinline)) long step_of(const char *text, long by)
{
    long sum = 0;
    for (int i = 0; text[i] && i < 8; i++)
        sum += text[i] * by;
    return sum & 15;
}

/* A loop that asks a sound function again and again. */
static __attribute__((noinline)) long settle(const char *text, long from)
{
    canary("never-settles");
    volatile long at = from;
    do
        at = step_of(text, at + 1);
    while (at >= 0);
    return at;
}

static __attribute__((noinline)) void settle_twice(char *text)
{
    char *rest = text;
    strsep(&rest, " ");
    printf("%ld\n", settle(rest ? rest : text, 2) + 1);
}

static void odd(state *state, int n);

/* Two callbacks that hand each other on, driven by one loop. */
static __attribute__((noinline)) void even(state *state, int n) { state->sum += n; state->steps++; }
static __attribute__((noinline)) void odd(state *state, int n) { state->sum -= n; state->steps++; }

static __attribute__((noinline)) void drive(state *state, step *first, step *second)
{
    canary("callbacks-never-done");
    while (state->steps >= 0) {
        first(state, 1);
        second(state, 2);
        if (state->steps > 1 << 20)
            state->steps = 0;
    }
}

static __attribute__((noinline)) void balance(char *text)
{
    state state = {text, 0, 0};
    drive(&state, even, odd);
}

static __attribute__((noinline)) void unbalance(char *text)
{
    state state = {text, 5, 1};
    drive(&state, odd, odd);
}

/* An own strlen over a ring. */
static __attribute__((noinline)) unsigned length_of(const char *ring, unsigned mask)
{
    unsigned length = 0;
    if (!memchr(ring, 0, mask + 1))
        canary("ring-without-end");
    while (((const volatile char *)ring)[length & mask])
        length++;
    return length;
}

static __attribute__((noinline)) void ring(const char *text)
{
    char ring[16] = {0};
    for (int i = 0; text[i]; i++)
        ring[i & 15] = text[i];
    printf("%u\n", length_of(ring, 15));
}

static __attribute__((noinline)) void small_ring(const char *text)
{
    char ring[4] = {0};
    for (int i = 0; text[i]; i++)
        ring[i & 3] = text[i];
    printf("%u\n", length_of(ring, 3));
}

static __attribute__((noinline)) void wait_for(long seconds)
{
    canary("sleeps-as-told");
    for (; seconds > 0; seconds--)
        nanosleep(&(struct timespec){1, 0}, NULL);
}

/* Reads what nobody will write. */
static __attribute__((noinline)) void answer(const char *question)
{
    int ends[2];
    char reply[8];
    if (pipe(ends))
        return;
    puts(question);
    fflush(stdout);
    canary("nobody-answers");
    while (read(ends[0], reply, sizeof reply) > 0)
        ;
}

/* The table's size grows with the number in the file, and so does what is written to it. */
static __attribute__((noinline)) void table(unsigned long rows)
{
    if (rows > 1 << 20)
        canary("table-of-any-size");
    for (unsigned long row = 0; row < rows; row++) {
        struct chunk *chunk = malloc(sizeof *chunk);
        if (!chunk)
            abort();
        memset(chunk->data, (int)row, sizeof chunk->data);
        chunk->next = chunks;
        chunks = chunk;
    }
}

/* Doubles a text as often as it is told. It may give up by itself before it is stopped; gcc would
 * put that into a part of its own, which unwind tables tell as another function. */
#ifndef __clang__
__attribute__((optimize("no-reorder-blocks-and-partition")))
#endif
static __attribute__((noinline)) void repeat(const char *text, int times)
{
    size_t length = strlen(text) + 1;
    char *all = strdup(text);
    if (times > 25)
        canary("doubled-too-often");
    while (times-- > 0) {
        all = realloc(all, 2 * length);
        if (!all)
            abort();
        memcpy(all + length, all, length);
        length *= 2;
    }
    printf("%zu\n", length);
}

static void command(char *word, char *rest)
{
    if (!strcmp(word, "digits"))
        printf("%ld\n", count_digits(rest));
    else if (!strcmp(word, "digit") && strlen(rest) > 1)
        printf("%ld\n", count_digits(rest + 1) + 1);
    else if (!strcmp(word, "settle"))
        printf("%ld\n", settle(rest, 1));
    else if (!strcmp(word, "settle2"))
        settle_twice(rest);
    else if (!strcmp(word, "balance"))
        balance(rest);
    else if (!strcmp(word, "unbalance"))
        unbalance(rest);
    else if (!strcmp(word, "ring"))
        ring(rest);
    else if (!strcmp(word, "small"))
        small_ring(rest);
    else if (!strcmp(word, "wait"))
        wait_for(atol(rest));
    else if (!strcmp(word, "ask"))
        answer(rest);
    else if (!strcmp(word, "table"))
        table(strtoul(rest, NULL, 10));
    else if (!strcmp(word, "repeat"))
        repeat(rest + 2 * (rest[0] && rest[1]), atoi(rest));
}

int main(void)
{
    char *text = slurp(NULL), *line;
    while ((line = strsep(&text, "\n"))) {
        char *rest = line;
        char *word = strsep(&rest, " ");
        if (!strcmp(word, "until")) {
            const char *at = rest ? rest : "";
            if (!strchr(at, ';'))
                canary("main-waits-for-a-semicolon");
            for (unsigned i = 0; ((const volatile char *)at)[i % (strlen(at) + 1)] != ';'; i++)
                ;
        } else
            command(word, rest ? rest : "");
    }
    return 0;
}
