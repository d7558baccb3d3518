/* At a terminal, by its first argument:
 *
 *   keys      in raw mode; crashes on the keys x, y in this order, exits on q
 *   lines     lines are read as the terminal gives them; exits with their number at its end
 *   size      its exit status is the number of columns when q comes; 'w' counts resizes
 *   stop      stops itself (SIGSTOP) on s, crashes on the key after that
 *   tty       works on /dev/tty alone; crashes on x
 *   child     a child reads the keys, and crashes on x
 *   deaf      ignores SIGHUP, ^C and the keys that it reads
 *   hang-up   crashes when it is hung up
 *   flood     writes a megabyte for each key; crashes on x
 *   sleeper   never reads
 *   naps      sleeps a tenth of a second before it reads, and on each z; crashes on x, y
 *   child-naps  the same by a child that only sleeps, before it reads
 *   last-nap  sleeps a tenth of a second on each z, and crashes then
 *   spin      computes for ever on s
 *   slow      computes a while on each key, of which it forgets those that came meanwhile;
 *             crashes on x, y
 *   state     exits with 0 when the terminal is as it was when it was new, and leaves it in
 *             disorder
 *   file      exits with the number of lines in the file named by its second argument, modulo 256
 *   who       exits with 0 when the terminal is its own in all respects */
#define _GNU_SOURCE
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <termios.h>
#include <time.h>
#include <unistd.h>

static volatile sig_atomic_t resized;

static void on_resize(int number)
{
    (void)number;
    resized++;
}

static void raw(int fd)
{
    struct termios mode;
    if (tcgetattr(fd, &mode) < 0)
        exit(101);
    cfmakeraw(&mode);
    tcsetattr(fd, TCSADRAIN, &mode);
}

__attribute__((noinline)) static void crash(void)
{
    *(volatile int *)8 = 1;
}

static int key(int fd)
{
    unsigned char byte;
    for (;;) {
        ssize_t got = read(fd, &byte, 1);
        if (got == 1)
            return byte;
        if (got == 0)
            exit(2);
    }
}

static void crash_on_xy(int fd)
{
    int before = 0, now;
    raw(fd);
    while ((now = key(fd)) != 'q') {
        if (before == 'x' && now == 'y')
            crash();
        before = now;
        dprintf(1, "[%02x]", now);
    }
    exit(0);
}

static void compute(long milliseconds)
{
    struct timespec now;
    clock_t until = clock() + milliseconds * (CLOCKS_PER_SEC / 1000);
    while (clock() < until)
        clock_gettime(CLOCK_MONOTONIC, &now);
}

static void nap(void)
{
    struct timespec tenth = {.tv_nsec = 100 * 1000 * 1000};
    nanosleep(&tenth, NULL);
}

static void nap_on_keys(int crashes)
{
    int before = 0, now;
    raw(0);
    for (;;) {
        now = key(0);
        if (now == 'z')
            nap();
        if ((now == 'z' && crashes) || (before == 'x' && now == 'y'))
            crash();
        before = now;
    }
}

static int columns(void)
{
    struct winsize size;
    return ioctl(0, TIOCGWINSZ, &size) < 0 ? 255 : size.ws_col;
}

static void tell_size(void)
{
    struct sigaction action = {.sa_handler = on_resize};
    sigaction(SIGWINCH, &action, NULL);
    raw(0);
    for (;;) {
        int now = key(0);
        if (now == 'q')
            exit(columns());
        if (now == 'w')
            exit(resized);
    }
}

static void stop(void)
{
    raw(0);
    while (key(0) != 's')
        ;
    raise(SIGSTOP);
    key(0);
    crash();
}

static void by_child(void)
{
    raw(0);
    pid_t child = fork();
    if (child == 0) {
        while (key(0) != 'x')
            ;
        crash();
    }
    waitpid(child, NULL, 0);
    exit(0);
}

static void deaf(void)
{
    signal(SIGHUP, SIG_IGN);
    signal(SIGINT, SIG_IGN);
    char byte;
    for (;;)
        if (read(0, &byte, 1) <= 0)
            pause();
}

static void on_hang_up(int number)
{
    (void)number;
    crash();
}

static void flood(void)
{
    static char block[1 << 12];
    memset(block, 'f', sizeof block);
    raw(0);
    for (;;) {
        if (key(0) == 'x')
            crash();
        for (int i = 0; i < 256; i++)
            if (write(1, block, sizeof block) < 0)
                exit(3);
    }
}

static int is_new(const struct termios *mode)
{
    struct winsize size;
    return mode->c_lflag & ICANON && mode->c_lflag & ECHO && mode->c_iflag & IXON
           && mode->c_oflag & OPOST && !(fcntl(0, F_GETFL) & O_NONBLOCK)
           && ioctl(0, TIOCGWINSZ, &size) == 0 && size.ws_row == 24 && size.ws_col == 80;
}

static void in_disorder(void)
{
    struct termios mode;
    struct winsize size = {3, 7, 0, 0};
    int unread = 0, discipline = 0;
    if (tcgetattr(0, &mode) < 0 || ioctl(0, FIONREAD, &unread) < 0 || unread > 0 || !is_new(&mode))
        exit(4);
    raw(0);
    ioctl(0, TIOCSETD, &discipline);
    ioctl(0, TIOCEXCL);
    ioctl(0, TIOCSWINSZ, &size);
    fcntl(0, F_SETFL, O_RDWR | O_NONBLOCK);
    fchmod(0, 0);
    tcflow(0, TCOOFF);
    exit(0);
}

static int lines_of(const char *path)
{
    FILE *file = fopen(path, "r");
    int byte, count = 0;
    if (!file)
        return 5;
    while ((byte = getc(file)) != EOF)
        count += byte == '\n';
    fclose(file);
    return count;
}

static void check_ownership(void)
{
    char *name = ttyname(0);
    if (!isatty(0) || !isatty(1) || !isatty(2))
        exit(10);
    if (tcgetpgrp(0) != getpid() || tcgetsid(0) != getpid() || getpgrp() != getpid())
        exit(11);
    if (!name || open(name, O_RDWR) < 0)
        exit(12);
    if (open("/dev/tty", O_RDWR) < 0)
        exit(13);
    for (int fd = 5; fd < 1024; fd++)
        if (fcntl(fd, F_GETFD) >= 0)
            exit(14);
    exit(strcmp(getenv("TERM") ? getenv("TERM") : "", "xterm") ? 15 : 0);
}

int main(int argc, char **argv)
{
    const char *how = argc > 1 ? argv[1] : "keys";
    if (!strcmp(how, "keys"))
        crash_on_xy(0);
    if (!strcmp(how, "lines")) {
        int byte, count = 0;
        while ((byte = getchar()) != EOF)
            count += byte == '\n';
        return count;
    }
    if (!strcmp(how, "size"))
        tell_size();
    if (!strcmp(how, "stop"))
        stop();
    if (!strcmp(how, "tty")) {
        int fd = open("/dev/tty", O_RDWR);
        close(0);
        raw(fd);
        while (key(fd) != 'x')
            ;
        crash();
    }
    if (!strcmp(how, "child"))
        by_child();
    if (!strcmp(how, "deaf"))
        deaf();
    if (!strcmp(how, "hang-up")) {
        signal(SIGHUP, on_hang_up);
        for (;;)
            pause();
    }
    if (!strcmp(how, "flood"))
        flood();
    if (!strcmp(how, "sleeper"))
        for (;;)
            pause();
    if (!strcmp(how, "naps"))
        nap();
    if (!strcmp(how, "child-naps")) {
        if (fork() == 0) {
            nap();
            _exit(0);
        }
        wait(NULL);
    }
    if (strstr(how, "nap"))
        nap_on_keys(!strcmp(how, "last-nap"));
    if (!strcmp(how, "spin")) {
        raw(0);
        while (key(0) != 's')
            ;
        for (;;)
            compute(1000);
    }
    if (!strcmp(how, "slow")) {
        int before = 0;
        raw(0);
        for (;;) {
            int now = key(0);
            if (before == 'x' && now == 'y')
                crash();
            before = now;
            compute(5);
            tcflush(0, TCIFLUSH);
        }
    }
    if (!strcmp(how, "state"))
        in_disorder();
    if (!strcmp(how, "file"))
        return lines_of(argv[2]);
    if (!strcmp(how, "who"))
        check_ownership();
    return 9;
}
