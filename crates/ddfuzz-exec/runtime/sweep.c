#define _GNU_SOURCE
#include "sweep.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdint.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

/* A test defines another name, to simulate a kernel without these files. */
#ifndef OUR_CHILDREN
#define OUR_CHILDREN "/proc/thread-self/children"
#endif

/* Depth of one pass; deeper processes are reparented when their parents are dead. */
enum { DEEPEST = 64, MOST_PASSES = 1000, MOST_SWEEPS = 2000, MOST_SCANNED = 4096, MOST_LOOKS = 25 };

static int signal_tree(const char *children_file, int number, int depth);

static char *append(char *at, const char *text)
{
    while (*text)
        *at++ = *text++;
    *at = 0;
    return at;
}

/* printf may allocate. */
static char *append_number(char *at, pid_t number)
{
    char digits[16];
    int length = 0;
    for (; number > 0; number /= 10)
        digits[length++] = (char)('0' + number % 10);
    while (length > 0)
        *at++ = digits[--length];
    *at = 0;
    return at;
}

static int signal_one(pid_t pid, int number, int depth)
{
    char path[64];
    kill(pid, number);
    if (depth == 0)
        return 1;
    char *at = append_number(append(path, "/proc/"), pid);
    append(append_number(append(at, "/task/"), pid), "/children");
    return 1 + signal_tree(path, number, depth - 1);
}

/* Signals all descendants; returns their number, or -1 if the kernel lists no children. */
static int signal_tree(const char *children_file, int number, int depth)
{
    char buffer[512];
    int count = 0, fd = open(children_file, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return depth == DEEPEST ? -1 : 0;
    ssize_t got;
    pid_t pid = 0;
    while ((got = read(fd, buffer, sizeof buffer)) > 0) {
        for (ssize_t i = 0; i < got; i++) {
            if (buffer[i] >= '0' && buffer[i] <= '9') {
                pid = pid * 10 + (buffer[i] - '0');
            } else if (pid > 0) {
                count += signal_one(pid, number, depth);
                pid = 0;
            }
        }
    }
    close(fd);
    return count;
}

static pid_t number_from(const char *text)
{
    pid_t number = 0;
    while (*text >= '0' && *text <= '9')
        number = number * 10 + (*text++ - '0');
    return *text ? 0 : number;
}

char *sweep_read_stat(pid_t pid, char *buffer, size_t size)
{
    char path[64];
    append(append_number(append(path, "/proc/"), pid), "/stat");
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return NULL;
    ssize_t got = read(fd, buffer, size - 1);
    close(fd);
    if (got <= 0)
        return NULL;
    buffer[got] = 0;
    /* "PID (NAME) STATE PARENT ...", where NAME may contain anything, brackets too. */
    char *at = strrchr(buffer, ')');
    return at && strlen(at) >= 5 ? at + 4 : NULL;
}

/* The parent of a process, or 0. */
static pid_t parent_of(pid_t pid)
{
    char stat[512];
    char *at = sweep_read_stat(pid, stat, sizeof stat);
    if (!at)
        return 0;
    at[strspn(at, "0123456789")] = 0;
    return number_from(at);
}

struct scan {
    pid_t tree[MOST_SCANNED]; /* this process and its descendants */
    int count, added;
};

static void meet(struct scan *scan, pid_t pid)
{
    pid_t parent = parent_of(pid);
    int known = 0, relative = 0;
    for (int i = 0; i < scan->count; i++) {
        known |= scan->tree[i] == pid;
        relative |= scan->tree[i] == parent;
    }
    if (relative && !known && scan->count < MOST_SCANNED) {
        scan->tree[scan->count++] = pid;
        scan->added = 1;
    }
}

/* struct linux_dirent64; readdir would allocate. */
struct entry {
    uint64_t inode;
    int64_t offset;
    uint16_t length;
    uint8_t kind;
    char name[];
};

static void meet_all(struct scan *scan)
{
    _Alignas(struct entry) char buffer[4096];
    int fd = open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return;
    long got;
    while ((got = syscall(SYS_getdents64, fd, buffer, sizeof buffer)) > 0) {
        for (long at = 0; at < got;) {
            struct entry *entry = (struct entry *)(buffer + at);
            pid_t pid = number_from(entry->name);
            if (pid > 0)
                meet(scan, pid);
            at += entry->length;
        }
    }
    close(fd);
}

/* Signals all descendants, for kernels that do not list children (CONFIG_PROC_CHILDREN): reads
 * the parent of every process. */
static int signal_by_scan(int number)
{
    static struct scan scan;
    scan.tree[0] = getpid();
    scan.count = 1;
    do {
        scan.added = 0;
        meet_all(&scan);
    } while (scan.added);
    for (int i = 1; i < scan.count; i++)
        kill(scan.tree[i], number);
    return scan.count - 1;
}

static int signal_descendants(int number)
{
    int count = signal_tree(OUR_CHILDREN, number, DEEPEST);
    return count < 0 ? signal_by_scan(number) : count;
}

/* A process that our signals cannot reach; 0 without a signal scope. */
static pid_t outside;

void sweep_within_signal_scope(pid_t process)
{
    outside = process;
}

/* Kills all processes in the signal scope except the caller. No process can fork meanwhile, so
 * it ends fork bombs. The signal scope is tested first: without it this would end the user's
 * session. */
static int kill_within_scope(void)
{
    if (outside < 1 || kill(outside, 0) == 0 || errno != EPERM)
        return 0;
    kill(-1, SIGKILL);
    return 1;
}

/* Stops all descendants before it kills any. Stopped processes still count for the limit on
 * processes, so that a fork bomb cannot grow; killing one while others run would allow a new
 * fork. */
static void stop_and_kill(void)
{
    if (kill_within_scope())
        return;
    int before = -1, now = signal_descendants(SIGSTOP);
    for (int pass = 0; pass < MOST_PASSES && now != before; pass++) {
        before = now;
        now = signal_descendants(SIGSTOP);
    }
    signal_descendants(SIGKILL);
}

/* Checks `looks` times, one millisecond apart, whether all descendants have ended, and then kills
 * and reaps the others. (On a busy machine that takes longer, but so does what they do.) Returns
 * whether there were any. */
static int sweep_after(int looks)
{
    int found = 0;
    for (int sweep = -looks; sweep < MOST_SWEEPS;) {
        pid_t pid = waitpid(-1, NULL, WNOHANG);
        if (pid < 0)
            break; /* no children left: the usual case costs only this call */
        found = 1;
        if (pid > 0)
            continue;
        if (sweep >= 0)
            stop_and_kill();
        poll(NULL, 0, 1);
        sweep++;
    }
    return found;
}

int sweep_descendants(void)
{
    return sweep_after(0);
}

int sweep_descendants_later(void)
{
    return sweep_after(MOST_LOOKS);
}

/* Whether `pid` is our only child; 0 if the kernel lists no children. */
static int is_only_child(pid_t pid)
{
    char buffer[64], expected[32];
    int fd = open(OUR_CHILDREN, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return 0;
    ssize_t got = read(fd, buffer, sizeof buffer - 1);
    close(fd);
    if (got <= 0)
        return 0;
    buffer[got] = 0;
    append(append_number(expected, pid), " ");
    return strcmp(buffer, expected) == 0;
}

int sweep_all_but(pid_t spared)
{
    pid_t ended;
    int lives = spared > 0;
    while ((ended = waitpid(-1, NULL, WNOHANG)) > 0)
        lives &= ended != spared;
    if (lives && is_only_child(spared))
        return 1;
    sweep_descendants();
    return 0;
}

int sweep_others(pid_t *spared)
{
    pid_t ended;
    int others = 0;
    while ((ended = waitpid(-1, NULL, WNOHANG)) > 0) {
        others |= ended != *spared;
        if (ended == *spared)
            *spared = -1;
    }
    if (ended < 0 || (*spared > 0 && is_only_child(*spared)))
        return others;
    sweep_descendants();
    *spared = -1;
    return 1;
}

/* The number of fields between the fourth field of /proc/PID/stat and the eleventh, the minor
 * faults of reaped children. */
enum { FIELDS_BEFORE = 7 };

int sweep_had_children(pid_t child)
{
    siginfo_t info;
    char stat[512];
    info.si_code = 0;
    while (waitid(P_PID, (id_t)child, &info, WEXITED | WNOWAIT) < 0)
        if (errno != EINTR)
            return 0;
    if (info.si_code == CLD_TRAPPED || info.si_code == CLD_STOPPED)
        return 0;
    char *at = sweep_read_stat(child, stat, sizeof stat);
    for (int field = 0; at && field < FIELDS_BEFORE; field++) {
        at = strchr(at, ' ');
        if (at)
            at++;
    }
    return at && *at != '0';
}
