/* Crashes where its input has a c in it; else does one of the things that a fuzzed program does
   to whoever runs it. */
#define _GNU_SOURCE
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void spin(void)
{
    for (volatile unsigned long i = 0;; i++)
        ;
}

static void flood(void)
{
    static char block[1 << 16];
    memset(block, 'x', sizeof block);
    for (int i = 0; i < 16384; i++)
        if (write(1, block, sizeof block) < 0)
            _exit(4);
}

static void bear_children(void)
{
    for (int i = 0; i < 5; i++)
        if (fork() == 0) {
            setsid();
            if (fork() == 0)
                setsid();
            for (;;)
                pause();
        }
}

static void eat(void)
{
    for (;;) {
        char *block = malloc(1 << 20);
        if (!block)
            spin();
        memset(block, 1, 1 << 20);
    }
}

int main(void)
{
    static unsigned char input[1 << 16];
    size_t length = fread(input, 1, sizeof input, stdin);
    if (memchr(input, 'c', length))
        *(volatile int *)8 = 1;
    switch (length ? input[0] % 8 : 7) {
    case 0:
        flood();
        break;
    case 1:
        bear_children();
        break;
    case 2:
        signal(SIGTERM, SIG_IGN);
        signal(SIGINT, SIG_IGN);
        spin();
        break;
    case 3:
        sleep(1000);
        break;
    case 4:
        eat();
        break;
    }
    return 0;
}
