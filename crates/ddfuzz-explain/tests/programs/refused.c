/* Does what keeps a program from being explained; the first character of the input says what, and the second
   one makes it fail if it is an x. */
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
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

/* Crashes in a call whose depth is random. */
static int somewhere(int depth)
{
    if (depth == 0)
        crash_if_wanted();
    return depth > 0 ? somewhere(depth - 1) + 1 : 0;
}

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
        unsigned short depth = 0;
        getrandom(&depth, sizeof depth, 0);
        return somewhere(depth % 4096) & 1;
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
