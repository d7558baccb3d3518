/* Does what keeps a program from being explained; the first character of the input says what, and the second
   one makes it fail if it is an x. */
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static int fails;

static void *thread(void *argument)
{
    return argument;
}

static int deep(int depth)
{
    char room[256];
    memset(room, depth, sizeof room);
    if (!fails && depth > 20)
        return room[0];
    return deep(depth + 1) + room[1];
}

static void crash_if_wanted(void)
{
    int *place = NULL;
    if (fails)
        *place = 1;
}

/* Functions that lead to a crash, of each two that do the same: sixteen bits of the process id choose. */
static int led(unsigned bits)
{
    crash_if_wanted();
    return bits;
}

#define EITHER(one, other, next) \
    static int one(unsigned bits) { return next(bits >> 1) + 1; } \
    static int other(unsigned bits) { return next(bits >> 1) + 2; }
#define CHOOSE(name, one, other) \
    static int name(unsigned bits) { return bits & 1 ? one(bits) : other(bits); }
#define STEP(name, one, other, next) EITHER(one, other, next) CHOOSE(name, one, other)

STEP(f0, a0, b0, led)
STEP(f1, a1, b1, f0)
STEP(f2, a2, b2, f1)
STEP(f3, a3, b3, f2)
STEP(f4, a4, b4, f3)
STEP(f5, a5, b5, f4)
STEP(f6, a6, b6, f5)
STEP(f7, a7, b7, f6)
STEP(f8, a8, b8, f7)
STEP(f9, a9, b9, f8)
STEP(f10, a10, b10, f9)
STEP(f11, a11, b11, f10)
STEP(f12, a12, b12, f11)
STEP(f13, a13, b13, f12)
STEP(f14, a14, b14, f13)
STEP(f15, a15, b15, f14)

/* A function with many statements that the passing run does not execute. */
static void only_failing(void)
{
    volatile int steps = 0;
    for (int i = 0; i < 200; i++) {
        steps++;
        steps += i;
        steps ^= 3;
    }
    crash_if_wanted();
}

int main(void)
{
    char line[64];
    pthread_t other;

    if (!fgets(line, sizeof line, stdin))
        return 2;
    switch (line[0]) {
    case 't':
        pthread_create(&other, NULL, thread, NULL);
        pthread_join(other, NULL);
        break;
    case 'f':
        if (fork() == 0)
            _exit(0);
        wait(NULL);
        break;
    case 'e':
        execl("/bin/true", "true", NULL);
        break;
    case 'm':
        mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
        break;
    case '9':
        kill(getpid(), SIGKILL);
        break;
    case 's':
        socket(AF_UNIX, SOCK_STREAM, 0);
        break;
    case 'p':
        printf("%d %ld\n", getpid(), clock());
        fflush(stdout);
        break;
    case 'k':
        /* What decides is the size of the file, which only the kernel knows. */
        if (lseek(0, 0, SEEK_END) == 3)
            abort();
        return 0;
    case 'b': {
        sigset_t all;
        sigfillset(&all);
        sigprocmask(SIG_BLOCK, &all, NULL);
        break;
    }
    case 'u':
        munmap((void *)((unsigned long)line & ~0xfffUL) - (1 << 20), 4096);
        munmap(mmap(NULL, 1 << 16, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0), 1 << 16);
        break;
    case 'h': {
        long *block = malloc(24), *other = malloc(24);
        malloc(24);
        free(block);
        block[0] = 0x4141414141414141;
        other[3] = 0x4242424242424242;
        break;
    }
    default:
        break;
    }
    fails = line[1] == 'x';
    if (line[0] == 'd')
        return deep(0) & 1;
    if (line[0] == 'r') {
        unsigned bits = getpid() * 2654435761u ^ (unsigned)clock() * 40503u;
        return f15(bits >> 12) & 1;
    }
    if (line[0] == 'o' && fails)
        only_failing();
    if (line[0] == 'l')
        while (fails)
            ;
    crash_if_wanted();
    puts("done");
    return 0;
}
