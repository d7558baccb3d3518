#define _GNU_SOURCE
#include "support.h"

#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "namespaces.h"

struct sandbox_part {
    const char *name;
    int namespaces;
    int read_only;
};

/* Parts that need a mount namespace, too, are tried together with it. */
static const struct sandbox_part sandbox_parts[] = {
    {"user", CLONE_NEWUSER, 0},
    {"mount", CLONE_NEWNS, 0},
    {"read-only", CLONE_NEWNS, 1},
    {"pid", CLONE_NEWPID | CLONE_NEWNS, 0},
    {"net", CLONE_NEWNET, 0},
    {"ipc", CLONE_NEWIPC, 0},
    {"uts", CLONE_NEWUTS, 0},
    {"seccomp", 0, 0},
};

/* The errno with which a child exits. */
static int errno_of(pid_t child)
{
    int status;
    if (child < 0)
        return errno;
    while (waitpid(child, &status, 0) < 0)
        if (errno != EINTR)
            return errno;
    return WIFEXITED(status) ? WEXITSTATUS(status) : EINTR;
}

static int try_filter(void)
{
    struct sock_filter allow = BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
    struct sock_fprog filter = {1, &allow};
    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    return syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &filter) < 0 ? errno : 0;
}

static int try_rest(const struct isolation *wanted, const char *directory)
{
    if (namespaces_rest(wanted) < 0)
        return errno;
    if (wanted->namespaces == CLONE_NEWNS || wanted->namespaces == (CLONE_NEWNS | CLONE_NEWUSER))
        return mount("ddfuzz", directory, "tmpfs", MS_NOSUID | MS_NODEV, "size=64k") < 0 ? errno
                                                                                       : 0;
    return 0;
}

/* Runs in a child process, with which all changes disappear. */
static int try(const struct sandbox_part *part, const char *directory)
{
    struct isolation wanted = {
        .namespaces = part->namespaces, .open = {directory}, .open_count = 1,
        .read_only = part->read_only};
    if (!part->namespaces)
        return try_filter();
    if (geteuid() != 0)
        wanted.namespaces |= CLONE_NEWUSER; /* grants the capabilities for the other namespaces */
    if (namespaces_children(&wanted) < 0)
        return errno;
    pid_t child = fork();
    if (child == 0)
        _exit(try_rest(&wanted, directory));
    return errno_of(child);
}

int report_support(const char *directory)
{
    for (size_t i = 0; i < sizeof sandbox_parts / sizeof *sandbox_parts; i++) {
        pid_t child = fork();
        if (child == 0)
            _exit(try(&sandbox_parts[i], directory));
        printf("%s %d\n", sandbox_parts[i].name, errno_of(child));
        fflush(stdout);
    }
    return 0;
}
