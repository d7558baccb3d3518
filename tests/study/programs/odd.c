/* Small utilities that fail in known ways, one for each name that this program is called by. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <termios.h>
#include <time.h>
#include <unistd.h>

static char text[1 << 21];

static size_t read_all(FILE *file)
{
    return file ? fread(text, 1, sizeof text, file) : 0;
}

static int holds(int letter, size_t length)
{
    return memchr(text, letter, length) != NULL;
}

static void die(void)
{
    *(volatile int *)8 = 1;
}

static void spin(void)
{
    for (volatile int turns = 0;; turns++) {
    }
}

/* Seconds of CPU time. */
__attribute__((noinline)) static void burn(double seconds)
{
    double end = (double)clock() + seconds * CLOCKS_PER_SEC;
    while ((double)clock() < end) {
    }
}

/* Of some inputs does not end, and of others takes long, at one place. */
static void doze(size_t length)
{
    if (length == 0 || length % 32 > 1)
        return;
    burn(length % 32 == 0 ? 1e9 : 0.3);
}

static void in_child(size_t length)
{
    pid_t child = fork();
    if (child == 0) {
        if (holds('Q', length))
            die();
        _exit(0);
    }
    waitpid(child, NULL, 0);
}

static void grow(void)
{
    for (;;) {
        char *more = malloc(1 << 20);
        if (!more)
            pause(); /* beyond its limit, until somebody looks */
        memset(more, 1, 1 << 20);
    }
}

static void at_terminal(void)
{
    struct termios raw;
    char key;
    int ready = 0;
    if (tcgetattr(STDIN_FILENO, &raw) < 0) {
        fprintf(stderr, "not a terminal\n");
        exit(1);
    }
    raw.c_lflag &= ~(tcflag_t)(ICANON | ECHO | ISIG);
    tcsetattr(STDIN_FILENO, TCSANOW, &raw);
    while (read(STDIN_FILENO, &key, 1) == 1 && key != 'q') {
        if (ready && key == 'y')
            die();
        ready |= key == 'x';
    }
}

/* Crashes on a Q, if the option -x is given. */
static void with_options(int argc, char **argv, size_t length)
{
    int option, wanted = 0;
    while ((option = getopt(argc, argv, "axb")) != -1)
        wanted |= option == 'x';
    if (wanted && holds('Q', length))
        die();
}

static void two_files(int argc, char **argv)
{
    if (argc < 3)
        exit(2);
    int first = holds('Q', read_all(fopen(argv[1], "r")));
    if (first && holds('R', read_all(fopen(argv[2], "r"))))
        die();
}

static void of_a_kind(int argc, char **argv)
{
    const char *ending = argc > 1 ? strrchr(argv[1], '.') : NULL;
    if (!ending || strcmp(ending, ".odd") != 0)
        exit(2);
    if (holds('Q', read_all(fopen(argv[1], "r"))))
        die();
}

static void give_up(void)
{
    abort();
}

/* Dies of four bytes beyond ASCII, and of a Q that stands alone or beside one byte; gives up on
 * a Q among others. */
static void detour(size_t length)
{
    int high = 0;
    for (size_t i = 0; i < length; i++)
        high += text[i] < 0;
    int held = holds('Q', length);
    if (held && length > 2)
        give_up();
    if (held || high > 3)
        die();
}

/* Tries to leave a file where it was found, and a process. */
static void stray(void)
{
    char path[4096];
    const char *folders = getenv("PATH");
    snprintf(path, sizeof path, "%.*s/left", folders ? (int)strcspn(folders, ":") : 0, folders);
    FILE *file = fopen(path, "w");
    if (file)
        fclose(file);
    if (fork() == 0) {
        setsid();
        if (fork() == 0)
            sleep(600);
        _exit(0);
    }
}

int main(int argc, char **argv)
{
    const char *slash = strrchr(argv[0], '/'), *name = slash ? slash + 1 : argv[0];
    int is_pair = strcmp(name, "pair") == 0, is_kind = strcmp(name, "kind") == 0;
    if (is_pair || is_kind) {
        is_pair ? two_files(argc, argv) : of_a_kind(argc, argv);
        return 0;
    }
    if (strcmp(name, "keys") == 0) {
        at_terminal();
        return 0;
    }
    if (strcmp(name, "waits") == 0)
        pause();
    if (strcmp(name, "kills") == 0)
        kill(0, SIGKILL);
    size_t length = read_all(stdin);
    if (strcmp(name, "loops") == 0)
        spin();
    if (strcmp(name, "zap") == 0 && holds('Q', length))
        die();
    if (strcmp(name, "detour") == 0)
        detour(length);
    if (strcmp(name, "hangs") == 0 && holds('Q', length))
        spin();
    if (strcmp(name, "grows") == 0 && holds('Q', length))
        grow();
    if (strcmp(name, "dozes") == 0)
        doze(length);
    if (strcmp(name, "slow") == 0 && length > 0)
        burn(0.25);
    if (strcmp(name, "strays") == 0)
        stray();
    if (strcmp(name, "parent") == 0)
        in_child(length);
    if (strcmp(name, "dawdles") == 0)
        usleep(100000);
    if (strcmp(name, "choosy") == 0 || strcmp(name, "dawdles") == 0)
        with_options(argc, argv, length);
    if (strcmp(name, "high") == 0)
        return 127;
    return 0;
}
