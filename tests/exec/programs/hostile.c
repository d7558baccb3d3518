/* Does what its input's first line asks for: the ways in which a target can be a nuisance. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static void spin(void)
{
    for (volatile unsigned long i = 0;; i++)
        ;
}

int main(int argc, char **argv)
{
    char word[64] = "";
    FILE *in = argc > 1 ? fopen(argv[1], "r") : stdin;
    if (!in || !fgets(word, sizeof word, in))
        return 3;
    word[strcspn(word, "\n")] = 0;
    if (!strcmp(word, "crash")) {
        *(volatile int *)0 = 1;
    } else if (!strcmp(word, "abort")) {
        abort();
    } else if (!strcmp(word, "flood")) {
        static char block[1 << 16];
        memset(block, 'x', sizeof block);
        for (int i = 0; i < 16384; i++)
            if (write(i & 1 ? 1 : 2, block, sizeof block) < 0)
                return 4;
    } else if (!strcmp(word, "stubborn")) {
        signal(SIGTERM, SIG_IGN);
        signal(SIGINT, SIG_IGN);
        spin();
    } else if (!strcmp(word, "sleep")) {
        for (;;)
            pause();
    } else if (!strcmp(word, "eat")) {
        for (;;) {
            char *block = malloc(1 << 20);
            if (!block)
                spin();
            memset(block, 1, 1 << 20);
        }
    } else if (!strcmp(word, "children")) {
        for (int i = 0; i < 5; i++)
            if (fork() == 0) {
                setsid();
                if (fork() == 0)
                    setsid();
                for (;;)
                    pause();
            }
    } else if (!strcmp(word, "bomb")) {
        for (int i = 0; i < 100000; i++)
            if (fork() < 0)
                usleep(100);
    } else if (!strcmp(word, "parent")) {
        kill(getppid(), SIGKILL);
    } else if (!strcmp(word, "litter")) {
        mkdir("d", 0700);
        FILE *f = fopen("d/file", "w");
        if (f)
            fputs("x", f);
        chmod("d", 0);
        return access("before", F_OK) == 0 ? 9 : (fclose(fopen("before", "w")), 0);
    } else if (!strcmp(word, "bigfile")) {
        static char block[1 << 20];
        FILE *f = fopen("big", "w");
        for (int i = 0; i < 1024 && f; i++)
            if (fwrite(block, 1, sizeof block, f) < sizeof block)
                return 5;
    } else if (!strcmp(word, "environment")) {
        return getenv("LD_PRELOAD") || getenv("DDFUZZ_MODE") || getenv("LD_BIND_NOW") ? 6 : 0;
    } else if (!strcmp(word, "writes-stdin")) {
        return write(0, "x", 1) < 0 ? 0 : 7;
    } else if (!strcmp(word, "descriptors")) {
        for (int fd = 3; fd < 1024; fd++)
            if (fcntl(fd, F_GETFD) >= 0)
                return 8;
    } else if (!strcmp(word, "who")) {
        return getuid() == 0 ? 1 : 0;
    } else {
        int sum = 0;
        for (char *at = word; *at; at++)
            sum = (sum + *at) & 0x3f;
        return sum;
    }
    return 0;
}
