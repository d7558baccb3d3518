/* What a path leads to: whether the process that makes many runs may look at it, open it, or move
 * there, as a new process would. */
#define _GNU_SOURCE
/* Where a call comes by a jump, nobody has saved the vector registers. */
#if defined(__x86_64__)
#pragma GCC target("general-regs-only")
#endif
#include "restore.h"

#if defined(__x86_64__) && defined(__linux__)
#include "restore_state.h"

#include <fcntl.h>
#include <sys/stat.h>

static int begins_with(const char *text, const char *beginning)
{
    while (*beginning && *text == *beginning)
        text++, beginning++;
    return *beginning == 0;
}

static int is_text(const char *text, const char *other)
{
    while (*text && *text == *other)
        text++, other++;
    return *text == *other;
}

/* Files of /proc and /sys that are the same for all processes. */
static int is_of_machine(const char *path)
{
    return begins_with(path, "/sys/") || begins_with(path, "/proc/sys/")
           || is_text(path, "/proc/cpuinfo") || is_text(path, "/proc/meminfo")
           || is_text(path, "/proc/filesystems");
}

static int is_stdin(const char *path)
{
    return is_text(path, "/dev/stdin") || is_text(path, "/dev/fd/0")
           || is_text(path, "/proc/self/fd/0");
}

/* Whether a path may lead to what is the runner's: its descriptors, its mappings, its number. */
static int is_of_process(const char *path)
{
    if (is_text(path, "/proc/self/exe"))
        return 0;
    int below = begins_with(path, "/proc") || begins_with(path, "/dev/fd")
                || begins_with(path, "/dev/std");
    return below && !is_of_machine(path) && !is_stdin(path);
}

int paths_facts(long directory, long path, struct stat *facts, long *error)
{
    const char *name = (const char *)path;
    if (is_of_process(name))
        return 0;
    *error = call4(SYS_newfstatat, directory, path, (long)facts, 0);
    if (*error < 0)
        return 1;
    return facts->st_dev != FIXED->proc_device || is_of_machine(name);
}

/* The minor number of a device that is memory, such as /dev/null; of others, -1. */
static long memory_device(const struct stat *facts)
{
    const dev_t memory = 1 << 8; /* its major number */
    dev_t minor = facts->st_rdev - memory;
    return S_ISCHR(facts->st_mode) && minor < 256 ? (long)minor : -1;
}

int paths_is_harmless(const struct stat *facts, int writes)
{
    long minor = memory_device(facts);
    if (writes)
        return minor == 3; /* /dev/null */
    /* null, zero, full and the randoms */
    return S_ISREG(facts->st_mode) || S_ISDIR(facts->st_mode) || minor == 3 || minor == 5
           || minor == 7 || minor == 8 || minor == 9;
}

int paths_may_move_to(const struct stat *facts)
{
    const struct file_identity *root = &FIXED->root_identity, *own = &FIXED->directory_identity;
    int is_own = facts->st_dev == own->device && facts->st_ino == own->inode;
    int is_root = facts->st_dev == root->device && facts->st_ino == root->inode;
    return is_own || (facts->st_dev == own->device && !is_root);
}

#endif
