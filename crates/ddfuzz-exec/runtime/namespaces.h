/* Namespaces of a sandboxed target, and its scratch directory in them. */
#ifndef DDFUZZ_NAMESPACES_H
#define DDFUZZ_NAMESPACES_H

#include <sys/types.h>

enum { MOST_OPEN = 8 };

struct isolation {
    int namespaces;                  /* flags CLONE_NEW* */
    const char *scratch;             /* the directory on which a tmpfs is mounted, or NULL */
    unsigned long long bytes, files; /* limits of the tmpfs */
    uid_t uid;                       /* owner of the tmpfs */
    gid_t gid;
    const char *open[MOST_OPEN]; /* writable directories, including the scratch directory */
    int open_count;
    const char *cover[MOST_OPEN]; /* directories on which the scratch directory is mounted, too */
    int cover_count;
    int read_only; /* with a mount namespace: fail unless all other files are read-only */
};

/* Each of these functions is called only if the kernel supports it; each returns -1 and sets
 * errno on failure. */

/* In the outer supervisor: puts its children into a PID namespace. */
int namespaces_children(const struct isolation *wanted);

/* In the inner supervisor, the first of those children: creates all other namespaces and makes
 * files read-only. A kernel that cannot is an error only if `read_only` is set. Sends the opened
 * scratch directory to ddfuzz by the supervisor pipe, because the mount is invisible outside. */
int namespaces_rest(const struct isolation *wanted);

/* Drops the capabilities within the user namespace. */
int namespaces_drop_rights(const struct isolation *wanted);

#endif
