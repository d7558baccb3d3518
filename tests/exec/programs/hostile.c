/* Does what its input's first line asks for: the ways in which a target can be a nuisance. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static void spin(void)
{
    for (volatile unsigned long i = 0;; i++)
        ;
}

static void crash(void)
{
    volatile int *volatile nowhere = 0;
    *nowhere = 1;
}

/* Five processes in sessions of their own, each with a child in another one. */
static void leave_children(void)
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

/* Four busy processes, whose parents die where they are orphans. */
static void keep_busy(int orphans)
{
    for (int i = 0; i < 4; i++)
        if (fork() == 0) {
            if (orphans && fork() > 0)
                _exit(0);
            spin();
        }
    for (;;)
        pause();
}

/* 90 children that each use 8 ms of the processor, which is less than a tick of /proc. */
static void keep_a_crowd_busy(void)
{
    for (int i = 0; i < 90; i++)
        if (fork() == 0) {
            while (clock() < CLOCKS_PER_SEC / 1000 * 8)
                ;
            break;
        }
    for (;;)
        pause();
}

/* 120 MiB that four children share. */
static int share_memory(void)
{
    size_t size = 120u << 20;
    char *block = malloc(size);
    if (!block)
        return 10;
    memset(block, 1, size);
    for (int i = 0; i < 4; i++)
        if (fork() == 0) {
            usleep(200000);
            _exit(block[size - 1] != 1);
        }
    int status, failed = 0;
    while (wait(&status) > 0)
        failed |= status;
    return failed ? 11 : 0;
}

/* Address space that is never used, as runtimes of languages take it. */
static int reserve(void)
{
    char *block = mmap(NULL, 1ul << 36, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE,
                       -1, 0);
    if (block == MAP_FAILED || mprotect(block, 1 << 20, PROT_READ | PROT_WRITE) < 0)
        return 12;
    memset(block, 1, 1 << 20);
    return 0;
}

/* Deeper than any path is long, by long names: in a sandbox the kernel looks at all directories
 * above for each that is made. */
static int nest(void)
{
    for (int i = 0; i < 500; i++)
        if (mkdir("directory", 0700) < 0 || chdir("directory") < 0)
            return 13;
    return 0;
}

int main(int argc, char **argv)
{
    char word[64] = "";
    FILE *in = argc > 1 ? fopen(argv[1], "r") : stdin;
    if (!in || !fgets(word, sizeof word, in))
        return 3;
    word[strcspn(word, "\n")] = 0;
    if (!strcmp(word, "crash")) {
        crash();
    } else if (!strcmp(word, "abort")) {
        abort();
    } else if (!strcmp(word, "flood") || !strcmp(word, "splash")) {
        /* A gigabyte; or 96 MiB for each output, more than a file may have. */
        static char block[1 << 16];
        int blocks = !strcmp(word, "flood") ? 16384 : 3072;
        memset(block, 'x', sizeof block);
        for (int i = 0; i < blocks; i++)
            if (write(i & 1 ? 1 : 2, block, sizeof block) < 0)
                return 4;
    } else if (!strcmp(word, "stubborn")) {
        signal(SIGTERM, SIG_IGN);
        signal(SIGINT, SIG_IGN);
        spin();
    } else if (!strcmp(word, "doze")) {
        usleep(50000);
        return 0;
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
        leave_children();
    } else if (!strcmp(word, "family")) {
        leave_children();
        for (;;)
            pause();
    } else if (!strcmp(word, "busy-children") || !strcmp(word, "busy-orphans")) {
        keep_busy(!strcmp(word, "busy-orphans"));
    } else if (!strcmp(word, "busy-crowd")) {
        keep_a_crowd_busy();
    } else if (!strcmp(word, "shares")) {
        return share_memory();
    } else if (!strcmp(word, "reserves")) {
        return reserve();
    } else if (!strcmp(word, "nests")) {
        return nest();
    } else if (!strcmp(word, "overflow")) {
        volatile char *block = malloc(8);
        block[8] = 1;
    } else if (!strcmp(word, "traced")) {
        ptrace(PTRACE_TRACEME, 0, NULL, NULL);
        crash();
    } else if (!strcmp(word, "traced-exec")) {
        ptrace(PTRACE_TRACEME, 0, NULL, NULL);
        execl("/bin/sh", "sh", "-c", "exit 42", (char *)NULL);
    } else if (!strcmp(word, "undumpable")) {
        prctl(PR_SET_DUMPABLE, 0);
        prctl(PR_SET_PDEATHSIG, 0);
        crash();
    } else if (!strcmp(word, "blocked")) {
        sigset_t all;
        sigfillset(&all);
        sigprocmask(SIG_SETMASK, &all, NULL);
        setsid();
        spin();
    } else if (!strcmp(word, "unlimited")) {
        struct rlimit limit = {RLIM_INFINITY, RLIM_INFINITY};
        setrlimit(RLIMIT_FSIZE, &limit);
        limit.rlim_cur = limit.rlim_max = 8;
        setrlimit(RLIMIT_NOFILE, &limit);
        setrlimit(RLIMIT_NPROC, &limit);
        crash();
    } else if (!strcmp(word, "group")) {
        kill(0, SIGKILL);
    } else if (!strcmp(word, "abort-group")) {
        kill(0, SIGABRT);
        pause();
    } else if (!strcmp(word, "daemon")) {
        /* A fork bomb of the same user, in another test, may have taken all the room there is. */
        for (int tries = 0; daemon(0, 0) < 0; tries++)
            if (errno != EAGAIN || tries == 3000)
                return 14;
            else
                usleep(1000);
        sleep(60);
        return 15;
    } else if (!strncmp(word, "kill ", 5)) {
        kill(atoi(word + 5), SIGKILL);
    } else if (!strcmp(word, "stops-parent")) {
        kill(getppid(), SIGSTOP);
        for (;;)
            pause();
    } else if (!strcmp(word, "no-directory")) {
        char here[256];
        return getcwd(here, sizeof here) && rmdir(here) == 0 ? 16 : 17;
    } else if (!strcmp(word, "closed-directory")) {
        return chmod(".", 0) < 0 ? 18 : 0;
    } else if (!strcmp(word, "no-input") && argc > 1) {
        remove(argv[1]);
    } else if (!strcmp(word, "writes-input")) {
        return open("/dev/stdin", O_WRONLY | O_TRUNC) < 0 ? 0 : 19;
    } else if (!strcmp(word, "bomb")) {
        for (int i = 0; i < 100000; i++)
            if (fork() < 0)
                usleep(10000); /* what kills it needs the processor, too */
    } else if (!strcmp(word, "parent")) {
        kill(getppid(), SIGKILL);
    } else if (!strcmp(word, "litter")) {
        mkdir("d", 0700);
        FILE *f = fopen("d/file", "w");
        if (f)
            fputs("x", f);
        chmod("d", 0);
        return access("before", F_OK) == 0 ? 9 : (fclose(fopen("before", "w")), 0);
    } else if (!strcmp(word, "same-name")) {
        /* Fails where another run uses the directory meanwhile. */
        char written[16], read[16] = "";
        snprintf(written, sizeof written, "%d", (int)getpid());
        FILE *out = fopen("same-name", "w");
        if (!out || fputs(written, out) == EOF || fclose(out))
            return 8;
        usleep(2000);
        FILE *back = fopen("same-name", "r");
        if (!back || !fgets(read, sizeof read, back) || strcmp(read, written) || unlink("same-name"))
            abort();
    } else if (!strcmp(word, "temporary")) {
        /* 10: no directory of its own; 9: what the run before wrote is still there. */
        const char *tmp = getenv("TMPDIR");
        if (!tmp || chdir(tmp) < 0 || !strstr(tmp, "ddfuzz-"))
            return 10;
        FILE *f = fopen("left", "wx");
        return f ? fclose(f) : 9;
    } else if (!strcmp(word, "bigfile")) {
        static char block[1 << 20];
        FILE *f = fopen("big", "w");
        for (int i = 0; i < 1024 && f; i++)
            if (fwrite(block, 1, sizeof block, f) < sizeof block)
                return 5;
    } else if (!strcmp(word, "environment")) {
        static const char *names[] = {"LD_PRELOAD=", "LD_BIND_NOW=", "DDFUZZ_"};
        static char all[1 << 16];
        int fd = open("/proc/self/environ", O_RDONLY);
        ssize_t length = fd < 0 ? -1 : read(fd, all, sizeof all);
        close(fd);
        for (int i = 0; i < 3; i++) {
            for (char **at = environ; *at; at++)
                if (!strncmp(*at, names[i], strlen(names[i])))
                    return 6;
            if (length < 0 || memmem(all, (size_t)length, names[i], strlen(names[i])))
                return 11;
        }
        return !getenv("PATH") || memmem(all, (size_t)length, "\0\0", 2) ? 12 : 0;
    } else if (!strcmp(word, "own-preload")) {
        const char *own = getenv("LD_PRELOAD");
        return own && !strcmp(own, "/no/such/library.so") ? 0 : 13;
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
