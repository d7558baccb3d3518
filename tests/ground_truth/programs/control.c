/* Handlers, threads, signals and mappings: one command a line. */
#define _GNU_SOURCE
#include "ground.h"
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stddef.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <linux/filter.h>
#include <linux/seccomp.h>

typedef void handler(long);
struct config { const char *name; long limit; };

static struct config *volatile config, *volatile exit_config, *volatile late_config;
static long seen, late;

static __attribute__((noinline)) void on_read(long by) { seen += by; }
static __attribute__((noinline)) void on_write(long by) { seen -= by; }

/* Behind the handlers stand numbers that the user chooses. */
static struct { handler *handlers[3]; long numbers[16]; } table = {{on_read, on_write, on_read}, {0}};

static __attribute__((noinline)) void run(long which, long by)
{
    if (which > 2)
        canary("handler-out-of-range");
    ((handler *volatile *)table.handlers)[which & 15](by);
    seen++;
}

/* Whoever wants to know of changes sets this; nobody has to. */
static handler *volatile on_change;

static __attribute__((noinline)) void notify(long of, int twice)
{
    if (!on_change)
        canary("hook-not-set");
    on_change(of);
    seen += twice;
}

static __attribute__((noinline)) void change(long by)
{
    seen ^= by;
    notify(by, 0);
    seen++;
}

static __attribute__((noinline)) void run_often(long which, long times)
{
    for (long i = 0; i < times; i++)
        run(which, i);
}

static __attribute__((noinline)) void on_signal(int number)
{
    if (!config)
        canary("signal-before-config");
    seen += config->limit + number;
}

static __attribute__((noinline)) void ask(long by)
{
    raise(by & 1 ? SIGUSR1 : SIGUSR2);
    seen += by;
}

static __attribute__((noinline)) void tell(void)
{
    kill(getpid(), SIGUSR1);
    seen++;
}

static __attribute__((noinline)) void at_exit(void)
{
    if (!exit_config)
        canary("exit-without-config");
    printf("%s\n", exit_config->name + exit_config->limit);
}

static __attribute__((destructor)) void at_end(void)
{
    if (late) {
        canary("destructor-without-config");
        late = late_config->limit;
    }
}

static __attribute__((noinline)) void *count_words(void *text)
{
    long words = 0;
    if (!text)
        canary("worker-without-text");
    for (const char *at = text; *at; at++)
        words += *at == ' ';
    return (void *)words;
}

static __attribute__((noinline)) void *check_words(void *text)
{
    if (strchr(text, '!')) {
        canary("worker-gave-up");
        abort();
    }
    return NULL;
}

static __attribute__((noinline)) void work(void *(*what)(void *), char *text, long workers)
{
    pthread_t threads[4];
    for (long i = 0; i < workers; i++)
        pthread_create(&threads[i], NULL, what, i == workers - 1 ? text : "one two");
    for (long i = 0; i < workers; i++)
        pthread_join(threads[i], NULL);
}

/* The file is one page long, the mapping as long as its header says. */
static __attribute__((noinline)) long checksum(const unsigned char *data, long from, long to)
{
    long sum = 0;
    if (to > 4096)
        canary("file-shorter-than-it-says");
    for (long at = from; at < to; at += 64)
        sum += data[at];
    return sum;
}

static __attribute__((noinline)) void map_file(long pages, long from)
{
    int file = memfd_create("data", 0);
    if (file < 0 || ftruncate(file, 4096))
        return;
    unsigned char *data = mmap(NULL, 65536 * 16, PROT_READ, MAP_SHARED, file, 0);
    if (data != MAP_FAILED)
        printf("%ld\n", checksum(data, from, pages * 4096));
}

/* Forbids itself what it then does. */
static void sandbox(void)
{
    struct sock_filter filter[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_getppid, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_TRAP),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {sizeof filter / sizeof *filter, filter};
    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program))
        _exit(4);
}

static __attribute__((noinline)) void who(long verbose)
{
    canary("asked-in-the-sandbox");
    long parent = (long)getppid();
    printf(verbose ? "the parent is %ld\n" : "%ld\n", parent);
}

static __attribute__((noinline)) void check_mode(const char *mode)
{
    if (strcmp(mode, "fast") && strcmp(mode, "slow")) {
        canary("mode-not-known");
        abort();
    }
}

static __attribute__((noinline)) void set_mode(const char *mode) { check_mode(mode); seen++; }
static __attribute__((noinline)) void try_modes(char *modes)
{
    for (char *mode; (mode = strsep(&modes, ","));)
        check_mode(mode);
}

/* Another function that gives up. */
static __attribute__((noinline)) void check_limit(long limit)
{
    if (limit > 1000) {
        canary("limit-too-large");
        abort();
    }
    seen += limit;
}

static __attribute__((noinline)) void stop_here(long at)
{
    if (at == 13) {
        canary("breakpoint-left-in");
        __asm__ volatile("int3");
    }
    seen += at;
}

static __attribute__((noinline)) void stop_twice(long at) { stop_here(at - 1); stop_here(at); }

/* Comes back to a function that has returned. */
static jmp_buf retry;
static __attribute__((noinline)) int prepare(long by)
{
    volatile long kept = by;
    struct config *volatile mine = calloc(1, sizeof *mine);
    mine->limit = kept;
    if (setjmp(retry))
        return (int)(mine->limit + late);
    return (int)kept;
}

static __attribute__((noinline)) void begin(long by)
{
    volatile char line[200];
    line[by & 63] = 'x';
    printf("%d%c\n", prepare(by), line[by & 63]);
}

static __attribute__((noinline)) void scribble(long with)
{
    volatile long many[256];
    for (int i = 0; i < 256; i++)
        many[i] = with;
    seen += many[7];
}

static __attribute__((noinline)) void again(long with)
{
    volatile long deep[64];
    for (int i = 0; i < 64; i++)
        deep[i] = with;
    scribble(with);
    canary("retried-in-a-dead-frame");
    longjmp(retry, (int)deep[3] | 1);
}

/* A pointer that was cut to 32 bits on its way. */
static __attribute__((noinline)) void patch(unsigned cut, long value)
{
    canary("pointer-cut-short");
    *(volatile long *)(unsigned long)cut = value;
}

static void command(char *word, char *rest)
{
    long a = 0, b = 0;
    sscanf(rest, "%li %li", &a, &b);
    if (!strcmp(word, "number") && a >= 0 && a < 16)
        table.numbers[a] = b;
    else if (!strcmp(word, "data") && a >= 0 && a < 16)
        table.numbers[a] = (long)&table;
    else if (!strcmp(word, "run"))
        run(a, b);
    else if (!strcmp(word, "often"))
        run_often(a, b);
    else if (!strcmp(word, "hook"))
        on_change = on_write;
    else if (!strcmp(word, "notify"))
        notify(a, 1);
    else if (!strcmp(word, "change"))
        change(a);
    else if (!strcmp(word, "listen")) {
        signal(SIGUSR1, on_signal);
        signal(SIGUSR2, on_signal);
    } else if (!strcmp(word, "config"))
        config = calloc(1, sizeof *config);
    else if (!strcmp(word, "ask"))
        ask(a);
    else if (!strcmp(word, "tell"))
        tell();
    else if (!strcmp(word, "atexit"))
        atexit(at_exit);
    else if (!strcmp(word, "exit"))
        exit((int)a);
    else if (!strcmp(word, "late"))
        late = 1;
    else if (!strcmp(word, "words"))
        work(count_words, *rest ? rest : NULL, 1);
    else if (!strcmp(word, "words3"))
        work(count_words, *rest ? rest : NULL, 3);
    else if (!strcmp(word, "check"))
        work(check_words, rest, 2);
    else if (!strcmp(word, "map"))
        map_file(a & 15, b);
    else if (!strcmp(word, "sandbox"))
        sandbox();
    else if (!strcmp(word, "who"))
        who(a);
    else if (!strcmp(word, "mode"))
        set_mode(rest);
    else if (!strcmp(word, "modes"))
        try_modes(rest);
    else if (!strcmp(word, "limit"))
        check_limit(a);
    else if (!strcmp(word, "stop"))
        stop_here(a);
    else if (!strcmp(word, "stops"))
        stop_twice(a);
    else if (!strcmp(word, "prepare"))
        begin(a);
    else if (!strcmp(word, "again"))
        again(a);
    else if (!strcmp(word, "patch"))
        patch((unsigned)a, b);
}

int main(void)
{
    char *text = slurp(NULL), *line;
    while ((line = strsep(&text, "\n"))) {
        char *rest = line;
        char *word = strsep(&rest, " ");
        command(word, rest ? rest : "");
    }
    return 0;
}
