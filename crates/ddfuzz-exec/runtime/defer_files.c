/* Before the fork point the program reads files once for all runs, so no run may be able to change
 * them: the user that runs it must not be allowed to write them, and they are no input, not in the
 * working directory, and no device, procfs or sysfs (/proc/self/maps is the same in each child). */
#define _GNU_SOURCE
#include "defer_files.h"

#if defined(__x86_64__) && defined(__linux__)
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "defer.h"
#include "defer_calls.h"
#include "serve.h"

#ifndef SYS_faccessat2
#define SYS_faccessat2 439
#endif

enum { MOST_INPUTS_NAMED = 4, MOST_FILES = 32 };

/* Files and file systems of which nothing is the same in each run: the input, the working
 * directory, procfs, sysfs. */
static struct identity {
    dev_t device;
    ino_t inode;
} changing[MOST_INPUTS_NAMED + 1];
static int changing_count;
static dev_t changing_devices[2];

/* Files that the program has opened since `main`. */
static struct opened {
    int fd;
    off_t offset; /* at the fork point */
    int status;   /* flags of the open file there */
} opened[MOST_FILES];
static int opened_count;

static struct opened *find_opened(long fd)
{
    for (int i = 0; i < opened_count; i++)
        if (opened[i].fd == fd)
            return &opened[i];
    return NULL;
}

int files_is_opened(long fd)
{
    return find_opened(fd) != NULL;
}

/* Whether a file is the same at the start of each run, by its facts. */
static int is_constant(const struct stat *facts)
{
    if (!S_ISREG(facts->st_mode) && !S_ISDIR(facts->st_mode) && !S_ISLNK(facts->st_mode))
        return 0;
    for (int i = 0; i < changing_count; i++)
        if (facts->st_dev == changing[i].device && facts->st_ino == changing[i].inode)
            return 0;
    return facts->st_dev != changing_devices[0] && facts->st_dev != changing_devices[1];
}

/* Whether the errno of a failed look-up says that the path does not exist, or that this user may
 * not look it up, such as a path in the home directory of root. */
static int is_out_of_reach(long error)
{
    return error == -ENOENT || error == -ENOTDIR || error == -EACCES;
}

/* Whether a path names the device /dev/null itself. A link may lead to stdin, which is another file
 * in each run than here, where it is this device, too. */
static int is_null_device(long directory, long path)
{
    struct stat facts;
    const int flags = AT_SYMLINK_NOFOLLOW;
    return defer_call(SYS_newfstatat, directory, path, (long)&facts, flags, 0, 0) == 0
           && serve_is_null(&facts);
}

int files_is_constant(long directory, long path, int flags)
{
    struct stat facts;
    long refused = defer_call(SYS_newfstatat, directory, path, (long)&facts, flags, 0, 0);
    return is_out_of_reach(refused) || (refused == 0 && is_constant(&facts))
           || is_null_device(directory, path);
}

static int is_random(long path)
{
    const char *name = (const char *)path;
    return strcmp(name, "/dev/urandom") == 0 || strcmp(name, "/dev/random") == 0;
}

/* Whether the file is there and the same for each run, or missing. */
static int is_readable_ahead(long directory, long path)
{
    struct stat facts;
    long refused = defer_call(SYS_newfstatat, directory, path, (long)&facts, 0, 0, 0);
    if (refused)
        return is_out_of_reach(refused);
    if (strcmp((const char *)path, "/proc/self/maps") == 0)
        return 1; /* a child has the same mappings */
    if (defer_frozen && is_random(path))
        return 1;
    /* A file that runs may write may have been changed by an earlier run. */
    return is_constant(&facts)
           && defer_call(SYS_faccessat2, directory, path, W_OK, AT_EACCESS, 0, 0) < 0;
}

int files_open(long directory, long path, long flags, long *result)
{
    if (flags & (O_ACCMODE | O_CREAT | O_TRUNC | O_PATH) || (flags & O_TMPFILE) == O_TMPFILE
        || opened_count == MOST_FILES || !is_readable_ahead(directory, path))
        return 0;
    *result = defer_call(SYS_openat, directory, path, flags, 0, 0, 0);
    if (*result >= 0)
        opened[opened_count++].fd = (int)*result;
    return 1;
}

int files_forget(long fd)
{
    struct opened *found = find_opened(fd);
    if (!found)
        return 0;
    *found = opened[--opened_count];
    return 1;
}

/* Reads the file status of stdout or stderr; returns 0 for other descriptors and closed ones. */
static int output_facts(long fd, struct stat *facts)
{
    return (fd == STDOUT_FILENO || fd == STDERR_FILENO)
           && defer_call(SYS_fstat, fd, (long)facts, 0, 0, 0, 0) == 0;
}

int files_is_plain_output(long fd)
{
    struct stat facts;
    return output_facts(fd, &facts) && !S_ISREG(facts.st_mode);
}

int files_is_null_output(long fd)
{
    struct stat facts;
    return output_facts(fd, &facts) && serve_is_null(&facts);
}

void files_note(void)
{
    for (struct opened *file = opened; file < opened + opened_count; file++) {
        file->offset = lseek(file->fd, 0, SEEK_CUR);
        file->status = fcntl(file->fd, F_GETFL);
    }
}

void files_set_back(void)
{
    for (const struct opened *file = opened; file < opened + opened_count; file++) {
        if (file->offset >= 0)
            lseek(file->fd, file->offset, SEEK_SET);
        fcntl(file->fd, F_SETFL, file->status);
    }
}

static void add_changing(dev_t device, ino_t inode)
{
    if (changing_count < MOST_INPUTS_NAMED + 1)
        changing[changing_count++] = (struct identity){device, inode};
}

int files_begin(const char *inputs)
{
    struct stat facts;
    for (char *at = (char *)inputs; *at;) {
        unsigned long long device = strtoull(at, &at, 10);
        if (*at++ != ':')
            return 0;
        add_changing((dev_t)device, (ino_t)strtoull(at, &at, 10));
        at += *at == ',';
    }
    if (stat("/proc", &facts) < 0)
        return 0;
    changing_devices[0] = facts.st_dev;
    changing_devices[1] = stat("/sys", &facts) == 0 ? facts.st_dev : changing_devices[0];
    if (stat(".", &facts) == 0)
        add_changing(facts.st_dev, facts.st_ino);
    return 1;
}
#endif
