#define _GNU_SOURCE
#include "namespaces.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "protocol.h"

enum { OF_CHILDREN = CLONE_NEWUSER | CLONE_NEWPID };

static int write_file(const char *path, const char *text)
{
    int fd = open(path, O_WRONLY | O_CLOEXEC);
    if (fd < 0)
        return -1;
    int written = write(fd, text, strlen(text)) >= 0;
    int error = errno;
    close(fd);
    errno = error;
    return written ? 0 : -1;
}

/* In the user namespace, the current user and group keep their ids, and no others exist. */
static int map_self(uid_t uid, gid_t gid)
{
    char users[64], groups[64];
    snprintf(users, sizeof users, "%u %u 1", uid, uid);
    snprintf(groups, sizeof groups, "%u %u 1", gid, gid);
    if (write_file("/proc/self/setgroups", "deny") < 0)
        return -1;
    return write_file("/proc/self/uid_map", users) < 0
                   || write_file("/proc/self/gid_map", groups) < 0
               ? -1
               : 0;
}

int namespaces_children(const struct isolation *wanted)
{
    uid_t uid = geteuid();
    gid_t gid = getegid();
    int flags = wanted->namespaces & OF_CHILDREN;
    if (flags && unshare(flags) < 0)
        return -1;
    return flags & CLONE_NEWUSER ? map_self(uid, gid) : 0;
}

static int send_descriptor(int socket, int fd)
{
    char word = 's';
    struct iovec part = {&word, 1};
    union {
        struct cmsghdr header;
        char room[CMSG_SPACE(sizeof(int))];
    } control;
    struct msghdr message = {.msg_iov = &part,
                             .msg_iovlen = 1,
                             .msg_control = control.room,
                             .msg_controllen = sizeof control.room};
    memset(&control, 0, sizeof control);
    control.header.cmsg_level = SOL_SOCKET;
    control.header.cmsg_type = SCM_RIGHTS;
    control.header.cmsg_len = CMSG_LEN(sizeof fd);
    memcpy(CMSG_DATA(&control.header), &fd, sizeof fd);
    return sendmsg(socket, &message, MSG_NOSIGNAL) == 1 ? 0 : -1;
}

/* System call of Linux 5.12, unknown to older headers; the number is the same for all
 * processors. */
enum { MOUNT_SETATTR = 442, RECURSIVE = 0x8000, READ_ONLY = 1 };

static int set_attributes(const char *path, unsigned int flags, unsigned long long set,
                          unsigned long long clear)
{
    unsigned long long attributes[4] = {set, clear, 0, 0};
    return (int)syscall(MOUNT_SETATTR, AT_FDCWD, path, flags, attributes, sizeof attributes);
}

/* Makes files read-only, with modes, owners and times, which Landlock does not protect. An old
 * kernel that cannot is an error only without Landlock (`read_only`). */
static int protect_files(const struct isolation *wanted)
{
    for (int i = 0; i < wanted->open_count; i++)
        if (mount(wanted->open[i], wanted->open[i], NULL, MS_BIND, NULL) < 0)
            return -1;
    if (set_attributes("/", RECURSIVE, READ_ONLY, 0) < 0)
        return wanted->read_only ? -1 : 0;
    for (int i = 0; i < wanted->open_count; i++)
        if (set_attributes(wanted->open[i], 0, 0, READ_ONLY) < 0)
            return -1;
    return 0;
}

/* Hides sockets in the file system, which can be reached from any network namespace: those of
 * services that log, print or grant privileges. A file that cannot be connected to is mounted on
 * each. */
static void hide_sockets(void)
{
    FILE *listing = fopen("/proc/net/unix", "re");
    char *line = NULL;
    size_t room = 0;
    while (listing && getline(&line, &room, listing) > 0) {
        char *path = strchr(line, '/');
        if (!path)
            continue;
        struct stat facts;
        path[strcspn(path, "\n")] = 0;
        /* Sockets may be missing, or be in another mount. */
        if (stat(path, &facts) == 0 && S_ISSOCK(facts.st_mode))
            mount("/dev/null", path, NULL, MS_BIND, NULL);
    }
    free(line);
    if (listing)
        fclose(listing);
}

static int mount_scratch(const struct isolation *wanted)
{
    char options[128];
    snprintf(options, sizeof options, "mode=755,size=%llu,nr_inodes=%llu,uid=%u,gid=%u",
             wanted->bytes, wanted->files, wanted->uid, wanted->gid);
    if (mount("ddfuzz", wanted->scratch, "tmpfs", MS_NOSUID | MS_NODEV, options) < 0)
        return -1;
    for (int i = 0; i < wanted->cover_count; i++)
        if (mount(wanted->scratch, wanted->cover[i], NULL, MS_BIND, NULL) < 0)
            return -1;
    int fd = open(wanted->scratch, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return -1;
    int sent = send_descriptor(FD_SUPERVISOR_PIPE, fd), error = errno;
    close(fd);
    errno = error;
    return sent;
}

int namespaces_rest(const struct isolation *wanted)
{
    const unsigned long safe = MS_NOSUID | MS_NODEV | MS_NOEXEC;
    int flags = wanted->namespaces & ~OF_CHILDREN;
    if (!(flags & CLONE_NEWNS))
        return flags ? unshare(flags) : 0;
    if (unshare(CLONE_NEWNS) < 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0)
        return -1;
    hide_sockets(); /* only with a network namespace */
    if (unshare(flags & ~CLONE_NEWNS) < 0 || protect_files(wanted) < 0)
        return -1;
    /* Sweeping reads process ids from /proc: they must be those of the namespace. */
    if (wanted->namespaces & CLONE_NEWPID && mount("proc", "/proc", "proc", safe, NULL) < 0)
        return -1;
    return wanted->scratch ? mount_scratch(wanted) : 0;
}

int namespaces_drop_rights(const struct isolation *wanted)
{
    struct __user_cap_header_struct header = {_LINUX_CAPABILITY_VERSION_3, 0};
    struct __user_cap_data_struct none[2];
    memset(none, 0, sizeof none);
    return wanted->namespaces & CLONE_NEWUSER ? (int)syscall(SYS_capset, &header, none) : 0;
}
