/* Namespaces of a target that runs in a sandbox, and its scratch directory in them. */
#ifndef DDFUZZ_NAMESPACES_H
#define DDFUZZ_NAMESPACES_H

#include <sys/types.h>

enum { MOST_OPEN = 8 };

struct isolation {
    int namespaces;                  /* CLONE_NEW* */
    const char *scratch;             /* becomes a tmpfs where it is not NULL ... */
    unsigned long long bytes, files; /* ... of that size ... */
    uid_t uid;                       /* ... that belongs to them */
    gid_t gid;
    const char *open[MOST_OPEN]; /* these, the scratch directory among them, can be written */
    int open_count;
    const char *cover[MOST_OPEN]; /* in the place of these it stands, too */
    int cover_count;
    int read_only; /* in a mount namespace: whatever is not among `open` must not be writable */
};

/* What follows is asked for by who knows that the system allows it; each gives -1 and an errno
 * where it does not. */

/* In the outer supervisor: its children are in a PID namespace. */
int namespaces_children(const struct isolation *wanted);

/* In the first of them: all other namespaces, in which nobody listens, and all files can be read
 * only; where the kernel cannot do the latter, it is an error only if `read_only` asks for it. The
 * scratch directory, opened, goes to ddfuzz by the lifeline: nobody sees it from outside. */
int namespaces_rest(const struct isolation *wanted);

/* Rights within a user namespace; a target has none. */
int namespaces_drop_rights(const struct isolation *wanted);

#endif
