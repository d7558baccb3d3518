/* Programs that never end, each in its own way. The word on stdin says which; the function that
 * names the hang is the one after which the word is named, unless the table of the test says so. */
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define FAR __attribute__((noinline, noclone))

static volatile unsigned long sink;
static volatile int yes = 1;

/* What loops call: it returns at once, or after some work. */
FAR static void tick(void) { sink++; }
FAR static void work(unsigned long rounds)
{
    while (rounds--)
        sink += rounds;
}
FAR static unsigned deeper(unsigned depth)
{
    unsigned below = depth ? deeper(depth - 1) : 0;
    tick();
    return below + 1;
}

FAR static void tight(void) { while (yes) ; }
FAR static void counting(void) { while (yes) sink++; }
FAR static void calling(void) { while (yes) tick(); }
FAR static void alternating(void) { while (yes) { tick(); work(1000); work(10); } }
FAR static void slow_calls(void) { while (yes) work(3000000); }
FAR static void nested(void) { while (yes) for (int i = 0; i < 1000; i++) work((unsigned long)i); }
FAR static void descending(void) { while (yes) sink += deeper(30); }
FAR static void copying(void)
{
    static char text[70000];
    memset(text, 'x', sizeof text - 1);
    while (yes) { sink += strlen(text); memmove(text + 1, text, 60000); }
}
FAR static void allocating(void)
{
    while (yes) { void *block = malloc(sink++ % 3000 + 1); *(volatile char *)block = 1; free(block); }
}
FAR static void sorting_order(void) { tick(); }
static int never_sorted(const void *a, const void *b) { (void)a; (void)b; while (yes) sorting_order(); return 0; }
FAR static void sorting(void) { int some[20] = {3, 1, 2}; qsort(some, 20, sizeof *some, never_sorted); }
FAR static void searching(void)
{
    int x = 3;
    while (yes) x = x * 7 + 1, sink += (unsigned long)x, sched_yield();
}

/* Two functions that never return: by a call and by a tail call. */
FAR static void tailed_end(void) { while (yes) tick(); }
FAR static void tailed(void) { tick(); tailed_end(); }

static jmp_buf back;
FAR static void jump_out(void) { work(500); longjmp(back, 1); }
FAR static void jumping(void) { while (yes) if (!setjmp(back)) jump_out(); }

/* Backtracking: as long as nothing, and not a loop at all. */
FAR static int second(unsigned left);
FAR static int first(unsigned left) { return left ? second(left - 1) | second(left - 1) : (int)(sink++ & 0); }
FAR static int second(unsigned left) { return left ? first(left - 1) + first(left - 1) : (int)(sink++ & 0); }
FAR static int backtracking(unsigned left)
{
    if (!left)
        return (int)(sink++ & 0);
    int found = backtracking(left - 1);
    tick();
    return found + backtracking(left - 1);
}
/* A loop within a recursion, which is at another depth each time. */
FAR static void visit(unsigned depth);
FAR static void enter(unsigned depth) { visit(depth - 1); tick(); }
FAR static void visit(unsigned depth)
{
    if (!depth)
        while (yes) tick();
    enter(depth);
    tick();
}
/* A loop that goes over the whole of a tree again and again. */
FAR static void walk_tree(unsigned depth)
{
    if (depth) { walk_tree(depth - 1); walk_tree(depth - 1); }
    tick();
}
FAR static void again(void) { while (yes) walk_tree(8); }

FAR static void reading(void)
{
    int ends[2];
    char byte;
    if (pipe(ends) == 0 && read(ends[0], &byte, 1) == 1) tick();
}
FAR static void sleeping(void) { sleep(1000); tick(); }
FAR static void napping(void)
{
    struct timespec nap = {0, 1000000};
    while (yes) nanosleep(&nap, NULL);
}
FAR static void locking(void)
{
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    pthread_mutex_lock(&lock);
    pthread_mutex_lock(&lock);
    tick();
}
FAR static void polling(void)
{
    struct epoll_event event;
    int set = epoll_create1(0);
    while (epoll_wait(set, &event, 1, -1) < 0 && errno == EINTR) tick();
}
/* Works each time that a signal interrupts it; it hangs where it sleeps. */
FAR static void woken(void)
{
    struct epoll_event event;
    int set = epoll_create1(0);
    while (epoll_wait(set, &event, 1, -1) < 0 && errno == EINTR) work(20000000);
}
FAR static void pausing(void) { while (yes) pause(); }
FAR static void stopping(void) { raise(SIGSTOP); tick(); }

static void on_alarm(int number) { (void)number; work(200); }
FAR static void interrupted(void)
{
    struct itimerval every = {{0, 1000}, {0, 1000}};
    signal(SIGALRM, on_alarm);
    setitimer(ITIMER_REAL, &every, NULL);
    while (yes) tick();
}
static void handling(int number) { (void)number; while (yes) tick(); }
FAR static void faulting(void) { signal(SIGSEGV, handling); *(volatile int *)(uintptr_t)(yes - 1) = 0; }

static void *spinning(void *unused) { while (yes) tick(); return unused; }
FAR static void joining(void)
{
    pthread_t thread;
    pthread_create(&thread, NULL, spinning, NULL);
    pthread_join(thread, NULL);
    tick();
}
static void *idle(void *unused) { static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; pthread_mutex_lock(&lock); for (;;) pause(); return unused; }
FAR static void with_idle_threads(void)
{
    pthread_t thread;
    for (int i = 0; i < 3; i++) pthread_create(&thread, NULL, idle, NULL);
    while (yes) tick();
}
static pthread_mutex_t one = PTHREAD_MUTEX_INITIALIZER, other = PTHREAD_MUTEX_INITIALIZER;
static pthread_barrier_t both;
static void *deadlock(void *unused)
{
    pthread_mutex_lock(&other);
    pthread_barrier_wait(&both);
    pthread_mutex_lock(&one);
    return unused;
}
FAR static void deadlocked(void)
{
    pthread_t thread;
    pthread_barrier_init(&both, NULL, 2);
    pthread_create(&thread, NULL, deadlock, NULL);
    pthread_mutex_lock(&one);
    pthread_barrier_wait(&both);
    pthread_join(thread, NULL);
    tick();
}
static void *many(void *unused) { while (yes) tick(); return unused; }
FAR static void crowded(void)
{
    pthread_t thread;
    for (int i = 0; i < 3; i++) pthread_create(&thread, NULL, many, NULL);
    while (yes) tick();
}
FAR static void child_spins(void) { while (yes) tick(); }
FAR static void forking(void)
{
    if (fork() == 0) child_spins();
    wait(NULL);
    tick();
}
FAR static void child_sleeps(void) { sleep(1000); tick(); }
FAR static void waiting(void)
{
    if (fork() == 0) child_sleeps();
    wait(NULL);
    tick();
}
static void at_end(void) { while (yes) tick(); }
FAR static void ending(void) { atexit(at_end); exit(0); }

static int is(const char *word, const char *name) { return strcmp(word, name) == 0; }

static void loops(const char *word)
{
    if (is(word, "tight")) tight();
    if (is(word, "counting")) counting();
    if (is(word, "calling")) calling();
    if (is(word, "alternating")) alternating();
    if (is(word, "slow_calls")) slow_calls();
    if (is(word, "nested")) nested();
    if (is(word, "descending")) descending();
    if (is(word, "copying")) copying();
    if (is(word, "allocating")) allocating();
    if (is(word, "sorting")) sorting();
    if (is(word, "searching")) searching();
    if (is(word, "tailed")) tailed();
    if (is(word, "jumping")) jumping();
    if (is(word, "again")) again();
    if (is(word, "backtracking")) sink += (unsigned long)backtracking(60);
    if (is(word, "mutual")) sink += (unsigned long)first(60);
    if (is(word, "visit 3")) visit(3);
    if (is(word, "visit 40")) visit(40);
    if (is(word, "visit 300")) visit(300);
    tick();
}

static void waits(const char *word)
{
    if (is(word, "reading")) reading();
    if (is(word, "sleeping")) sleeping();
    if (is(word, "napping")) napping();
    if (is(word, "locking")) locking();
    if (is(word, "polling")) polling();
    if (is(word, "woken")) woken();
    if (is(word, "pausing")) pausing();
    if (is(word, "stopping")) stopping();
    if (is(word, "deadlocked")) deadlocked();
    if (is(word, "waiting")) waiting();
    tick();
}

int main(void)
{
    char word[40] = "";
    fgets(word, sizeof word, stdin);
    loops(word);
    waits(word);
    if (is(word, "interrupted")) interrupted();
    if (is(word, "faulting")) faulting();
    if (is(word, "joining")) joining();
    if (is(word, "with_idle_threads")) with_idle_threads();
    if (is(word, "crowded")) crowded();
    if (is(word, "forking")) forking();
    if (is(word, "ending")) ending();
    if (is(word, "main"))
        while (yes) tick();
    return 0;
}
