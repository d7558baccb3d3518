/* An interestingness test. The input says what it does: each letter is an act, in their order; it
 * then exits with 0 if the input has an `x`, else with 1. Exits with 90 and more where what it is
 * given is not as it should be for each run. */
#include <dirent.h>
#include <fcntl.h>
#include <libgen.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static int runs;
static char input[4096];
static size_t length;

static size_t contents(int fd, char *into)
{
    size_t got = 0;
    ssize_t more;
    while ((more = read(fd, into + got, sizeof input - got)) > 0)
        got += (size_t)more;
    return got;
}

/* Whether a file has the contents of stdin. */
static int is_input(const char *path)
{
    static char other[sizeof input];
    int fd = open(path, O_RDONLY);
    int same = fd >= 0 && contents(fd, other) == length && memcmp(other, input, length) == 0;
    close(fd);
    return same;
}

static int entries(void)
{
    int count = 0;
    DIR *directory = opendir(".");
    for (struct dirent *entry; (entry = readdir(directory));)
        count += entry->d_name[0] != '.';
    closedir(directory);
    return count;
}

static void spoil(const char *path)
{
    int fd = open(path, O_WRONLY | O_TRUNC);
    if (fd >= 0 && write(fd, "spoiled", 7) != 7)
        exit(95);
    close(fd);
}

/* The child ends by a crash, of which the end of a test says nothing. */
static void start_another(void)
{
    int status;
    pid_t child = (pid_t)syscall(SYS_fork);
    if (child == 0)
        raise(SIGSEGV);
    if (waitpid(child, &status, 0) != child || !WIFSIGNALED(status))
        exit(96);
}

static void act(char letter, const char *path)
{
    switch (letter) {
    case 'u': exit(125);
    case 's': raise(SIGSEGV); break;
    case 't': raise(SIGTERM); break;
    case 'l': for (;;) ; break;
    case 'c': close(open("left-behind", O_WRONLY | O_CREAT, 0600)); break;
    case 'd': unlink(path); break;
    case 'm': rename(path, "moved"); break;
    case 'n': unlink(path); mkdir(path, 0700); break;
    case 'w': spoil(path); break;
    case 'h': chmod(path, 0400); break;
    case 'p': start_another(); break;
    case 'r': chdir("/"); break;
    case 'a': if (!malloc(100000)) exit(97); break;
    default: break;
    }
}

int main(int argc, char **argv)
{
    struct stat facts;
    if (argc != 2 || argv[1][0] != '/')
        return 90;
    length = contents(STDIN_FILENO, input);
    if (fstat(STDIN_FILENO, &facts) || !S_ISREG(facts.st_mode) || (size_t)facts.st_size != length)
        return 91;
    if (!is_input(argv[1]) || !is_input(basename(strdup(argv[1]))))
        return 92;
    if (entries() != 1 || stat(argv[1], &facts) || (facts.st_mode & 07777) != 0644)
        return 93;
    if (runs++)
        return 94;
    for (size_t at = 0; at < length; at++)
        act(input[at], argv[1]);
    return memchr(input, 'x', length) ? 0 : 1;
}
