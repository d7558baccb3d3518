/* Stacks that end, each in its own way. The word on stdin says which, the number behind it how far
 * it is from the first call to the recursion, or how large a frame is. */
#define _GNU_SOURCE
#include <alloca.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FAR __attribute__((noinline, noclone))

static volatile unsigned long sink;
static volatile int yes = 1;

FAR static void touch(volatile char *text) { sink += (unsigned char)*text; }

/* Other calls on the way, as many as the input says: each keeps some of the stack. */
FAR static void descend(int steps, void (*then)(long))
{
    volatile char kept[72];
    kept[0] = (char)steps;
    touch(kept);
    if (steps > 0)
        descend(steps - 1, then);
    else
        then(yes);
    touch(kept);
}

FAR static long itself(long n) { volatile char kept[40]; kept[0] = (char)n; touch(kept); return yes ? itself(n + 1) + kept[0] : 0; }
FAR static void in_itself(long n) { sink += (unsigned long)itself(n); }

/* A parser of lists and of what is in them, which can be entered by either. */
FAR static long list(long n);
FAR static long item(long n) { volatile char kept[56]; kept[0] = (char)n; touch(kept); return yes ? list(n + 1) + kept[0] : 0; }
FAR static long list(long n) { volatile char kept[120]; kept[0] = (char)n; touch(kept); return yes ? item(n + 1) + kept[0] : 0; }
FAR static void by_list(long n) { sink += (unsigned long)list(n); }
FAR static void by_item(long n) { sink += (unsigned long)item(n); }

/* Cycles that are not the same each time around. */
FAR static long step(long n);
FAR static long left(long n) { volatile char kept[24]; kept[0] = (char)n; touch(kept); return step(n + 1) + kept[0]; }
FAR static long right(long n) { volatile char kept[88]; kept[0] = (char)n; touch(kept); return step(n + 3) + kept[0]; }
FAR static long step(long n) { volatile char kept[8]; kept[0] = 1; touch(kept); return (n * 2654435761u >> 7 & 1 ? left(n) : right(n)) + kept[0]; }
FAR static void alternating(long n) { sink += (unsigned long)step(n); }

/* The stack ends within the C library, mostly. */
FAR static long printing(long n)
{
    char text[24];
    snprintf(text, sizeof text, "%ld %s %g", n, "text", (double)n);
    touch(text);
    return yes ? printing(n + 1) + text[1] : 0;
}
FAR static void in_libc(long n) { sink += (unsigned long)printing(n); }

/* The C library is part of the cycle. */
FAR static void sort(void);
static int compare(const void *a, const void *b) { sort(); return (*(const char *)a > *(const char *)b) + (int)sink; }
FAR static void sort(void) { char some[8] = {3, 1, 2}; qsort(some, 3, 1, compare); touch(some); }
FAR static void sorting(long n) { sort(); sink += (unsigned long)n; }

FAR static long in_a_thread(long n) { volatile char kept[200]; kept[0] = (char)n; touch(kept); return yes ? in_a_thread(n + 1) + kept[0] : 0; }
FAR static void recur(long n) { sink += (unsigned long)in_a_thread(n); }
static void *start(void *steps) { descend((int)(long)steps, recur); return NULL; }
FAR static void thread(long steps)
{
    pthread_t thread;
    pthread_attr_t small;
    pthread_attr_init(&small);
    pthread_attr_setstacksize(&small, 64 << 10);
    pthread_create(&thread, &small, start, (void *)steps);
    pthread_join(thread, NULL);
}

/* More than a hundred thousand frames. */
FAR static long deep(long n) { long below = yes ? deep(n + 1) : 0; sink++; return below; }
FAR static void deeply(long n) { sink += (unsigned long)deep(n); }

FAR static void array(size_t size) { char text[size]; memset(text, 1, size); touch(text); }
FAR static void allocating(size_t size) { volatile char *text = alloca(size); text[size / 2] = 1; text[0] = 1; touch(text); }

int main(void)
{
    char word[20] = "";
    int n = 0;
    if (scanf("%19s %d", word, &n) != 2)
        return 1;
    if (!strcmp(word, "itself")) descend(n, in_itself);
    if (!strcmp(word, "mutual")) descend(n, n & 1 ? by_list : by_item);
    if (!strcmp(word, "alternating")) { sink = 0; alternating(n); }
    if (!strcmp(word, "libc")) descend(n, in_libc);
    if (!strcmp(word, "sorting")) descend(n, sorting);
    if (!strcmp(word, "thread")) thread(n);
    if (!strcmp(word, "deep")) descend(n, deeply);
    if (!strcmp(word, "vla")) array((size_t)n);
    if (!strcmp(word, "alloca")) allocating((size_t)n);
    return 0;
}
