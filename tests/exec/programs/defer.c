/* Does before it reads its input what its first argument says, and ends with a status that shows
 * whether the rest of the run fits to it. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <locale.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static char input[64];
static sigjmp_buf recovery;
static volatile int zero;
static int *volatile nowhere;

static void read_input(void)
{
    memset(input, 0, sizeof input);
    if (read(0, input, sizeof input) < 0)
        _exit(99);
}

static int crash(void) { return *nowhere; }
static void on_crash(int number) { (void)number; _exit(9); }
static void on_timer(int number) { (void)number; _exit(7); }
static void recover(int number) { (void)number; siglongjmp(recovery, 1); }
static void *six(void *unused) { (void)unused; return (void *)6; }

static void handle(int number, void (*handler)(int))
{
    struct sigaction action = {.sa_handler = handler};
    sigaction(number, &action, NULL);
}

static int by_clock(clockid_t clock)
{
    struct timespec now;
    clock_gettime(clock, &now);
    read_input();
    return (int)(now.tv_nsec / 1000) & 127;
}

static int by_counter(void)
{
    unsigned low, high;
    __asm__ volatile("rdtsc" : "=a"(low), "=d"(high));
    read_input();
    return (int)(low >> 8) & 127;
}

static int by_random(void)
{
    unsigned char byte = 0;
    if (getrandom(&byte, 1, 0) != 1)
        return 98;
    read_input();
    return byte & 127;
}

static int by_pid(void)
{
    pid_t before = getpid();
    read_input();
    return before != getpid();
}

/* Uses CPU time, and returns whether there was less of it later. */
static int by_cpu_time(void)
{
    clock_t before = clock();
    while (clock() < before + CLOCKS_PER_SEC / 50) {}
    before = clock();
    read_input();
    return clock() < before;
}

static int by_mutex(void)
{
    pthread_mutex_t mutex;
    pthread_mutexattr_t attributes;
    pthread_mutexattr_init(&attributes);
    pthread_mutexattr_settype(&attributes, PTHREAD_MUTEX_ERRORCHECK);
    pthread_mutex_init(&mutex, &attributes);
    pthread_mutex_lock(&mutex);
    read_input();
    return pthread_mutex_unlock(&mutex) != 0;
}

/* The sum of a file of which the first bytes are read before the input. */
static int by_rest(const char *path)
{
    unsigned char bytes[256];
    unsigned sum = 0;
    int fd = open(path, O_RDONLY);
    ssize_t got = read(fd, bytes, 7);
    for (int round = 0; got > 0; round++) {
        for (ssize_t i = 0; i < got; i++)
            sum += bytes[i];
        if (round == 0)
            read_input();
        got = read(fd, bytes, sizeof bytes);
    }
    return (int)(sum % 101);
}

static int by_mask(void)
{
    sigset_t set, pending, now;
    sigemptyset(&set);
    sigaddset(&set, SIGUSR1);
    sigprocmask(SIG_BLOCK, &set, NULL);
    read_input();
    raise(SIGUSR1);
    sigpending(&pending);
    sigprocmask(SIG_SETMASK, NULL, &now);
    return !sigismember(&pending, SIGUSR1) || sigismember(&now, SIGSYS)
           || sigismember(&now, SIGSEGV);
}

static int by_stack(int own)
{
    static char memory[1 << 16];
    stack_t stack = {.ss_sp = memory, .ss_size = sizeof memory}, now;
    if (own && sigaltstack(&stack, NULL) < 0)
        return 97;
    read_input();
    sigaltstack(NULL, &now);
    return own ? now.ss_sp != memory || now.ss_flags : now.ss_flags != SS_DISABLE;
}

/* Whether a library is preloaded beside that of the test, which AT_MAIN goes with. */
static int has_foreign_library(void)
{
    const char *list = getenv("LD_PRELOAD");
    return list && (!getenv("AT_MAIN") || strchr(list, ':'));
}

/* Whether a process is as the kernel makes it. */
static int by_state(void)
{
    const int numbers[] = {SIGSYS, SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGTRAP, SIGVTALRM, SIGCHLD};
    struct sigaction action;
    struct itimerval timer;
    int counter = 0;
    read_input();
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        if (sigaction(numbers[i], NULL, &action) < 0 || action.sa_handler != SIG_DFL)
            return 10 + (int)i;
    getitimer(ITIMER_VIRTUAL, &timer);
    prctl(PR_GET_TSC, &counter);
    return timer.it_value.tv_usec || timer.it_value.tv_sec || counter != PR_TSC_ENABLE
           || has_foreign_library() || getenv("DDFUZZ_INPUTS") || getenv("DDFUZZ_MODE");
}

static int by_fork(void)
{
    int status = 0;
    if (fork() == 0)
        _exit(4);
    wait(&status);
    read_input();
    return WEXITSTATUS(status);
}

static int by_thread(void)
{
    pthread_t thread;
    void *result = NULL;
    pthread_create(&thread, NULL, six, NULL);
    pthread_join(thread, &result);
    read_input();
    return (int)(long)result;
}

/* The C library holds a lock of its own when it first allocates. */
static int by_locale(void)
{
    setlocale(LC_ALL, "");
    char *text = strdup(setlocale(LC_ALL, NULL));
    read_input();
    return !setlocale(LC_ALL, "C") || !setlocale(LC_ALL, text) || !text;
}

static int by_descriptors(const char *path)
{
    int open_ones = 0;
    if (open(path, O_RDONLY) < 0)
        return 96;
    read_input();
    for (int fd = 0; fd < 400; fd++)
        open_ones += fcntl(fd, F_GETFD) >= 0;
    return open_ones;
}

static int by_timer(void)
{
    struct itimerval soon = {.it_value = {0, 1000}};
    handle(SIGVTALRM, on_timer);
    setitimer(ITIMER_VIRTUAL, &soon, NULL);
    read_input();
    while (!zero) {}
    return 0;
}

static int by_recovery(void)
{
    handle(SIGSEGV, recover);
    if (!sigsetjmp(recovery, 1))
        crash();
    read_input();
    return 5;
}

static int by_size(const char *path)
{
    struct stat facts;
    if (stat(path, &facts) < 0)
        return 95;
    return (int)facts.st_size;
}

/* Asks what is the same in each run, though it stands beside what is not. */
static int by_looks(void)
{
    char path[256];
    struct stat facts;
    int is_terminal = isatty(0);
    ssize_t length = readlink("/proc/self/exe", path, sizeof path);
    int is_seen = stat("/proc/1/root/etc", &facts) == 0;
    int list = open("/usr", O_RDONLY | O_DIRECTORY);
    char entries[4096];
    long read_entries = syscall(SYS_getdents64, list, entries, sizeof entries);
    read_input();
    return is_terminal || is_seen || length <= 0 || read_entries <= 0 ? 94 : input[0] == 'c';
}

/* Asks for the device /dev/null, which is stdin before the input is, and for flags of open files. */
static int by_null(void)
{
    struct stat facts;
    int is_null = stat("/dev/null", &facts) == 0 && S_ISCHR(facts.st_mode);
    int stdin_flags = fcntl(0, F_GETFL), stderr_flags = fcntl(2, F_GETFL);
    int is_set = fcntl(2, F_SETFL, stderr_flags | O_APPEND) == 0;
    read_input();
    int is_kept = stdin_flags == fcntl(0, F_GETFL) && fcntl(2, F_GETFL) & O_APPEND;
    return is_null && is_set && is_kept ? stdin_flags & O_ACCMODE : 93;
}

/* Keeps the standard descriptors open across execve, and asks where they stand, as interpreters do. */
static long stands(void)
{
    long at = lseek(0, 0, SEEK_CUR);
    lseek(1, 0, SEEK_CUR);
    return at + fcntl(0, F_SETFD, 0) + fcntl(1, F_SETFD, 0) + fcntl(2, F_SETFD, 0);
}

static int by_stdin_path(void)
{
    struct stat facts;
    if (stat("/dev/stdin", &facts) < 0)
        return 92;
    read_input();
    return S_ISCHR(facts.st_mode) ? 91 : (int)facts.st_size;
}

int main(int argc, char **argv)
{
    const char *what = argc > 1 ? argv[1] : "", *path = argc > 2 ? argv[2] : "/etc/passwd";
    if (!strcmp(what, "time")) return by_clock(CLOCK_REALTIME);
    if (!strcmp(what, "coarse-time")) return by_clock(CLOCK_REALTIME_COARSE);
    if (!strcmp(what, "counter")) return by_counter();
    if (!strcmp(what, "random")) return by_random();
    if (!strcmp(what, "pid")) return by_pid();
    if (!strcmp(what, "cpu-time")) return by_cpu_time();
    if (!strcmp(what, "mutex")) return by_mutex();
    if (!strcmp(what, "rest")) return by_rest(path);
    if (!strcmp(what, "mask")) return by_mask();
    if (!strcmp(what, "no-stack")) return by_stack(0);
    if (!strcmp(what, "own-stack")) return by_stack(1);
    if (!strcmp(what, "state")) return by_state();
    if (!strcmp(what, "fork")) return by_fork();
    if (!strcmp(what, "thread")) return by_thread();
    if (!strcmp(what, "locale")) return by_locale();
    if (!strcmp(what, "descriptors")) return by_descriptors(path);
    if (!strcmp(what, "timer")) return by_timer();
    if (!strcmp(what, "recovers")) return by_recovery();
    if (!strcmp(what, "size")) return by_size(path);
    if (!strcmp(what, "looks")) return by_looks();
    if (!strcmp(what, "null")) return by_null();
    if (!strcmp(what, "stands") && stands() != 0) return 95;
    if (!strcmp(what, "stdin-path")) return by_stdin_path();
    if (!strcmp(what, "handler")) handle(SIGSEGV, on_crash);
    if (!strcmp(what, "terminal") && isatty(STDIN_FILENO)) return 96;
    if (!strcmp(what, "prints")) { puts("ready"); fflush(stdout); }
    if (!strcmp(what, "never-reads")) return 3;
    if (!strcmp(what, "crashes")) return crash();
    if (!strcmp(what, "divides")) return 1 / zero;
    if (!strcmp(what, "aborts")) abort();
    if (!strcmp(what, "loops")) while (!zero) {}
    read_input();
    return input[0] == 'c' ? crash() : 0;
}
