/* Ends whatever a run, or a whole server, has left behind. */
#ifndef DDFUZZ_SWEEP_H
#define DDFUZZ_SWEEP_H

#include <stddef.h>
#include <sys/types.h>

/* Kills and reaps all descendants: the caller must be a child subreaper. Gives up on processes
 * that do not die of SIGKILL (a dead file system holds them), so that nobody waits for ever.
 * Whether there were any. */
int sweep_descendants(void);

/* Reads /proc/PID/stat, without the heap; gives its fields from the fourth on, or NULL. */
char *sweep_read_stat(pid_t pid, char *buffer, size_t size);

/* The same, but the child `spared` lives on. 0: it does not, it had to go with the others. */
int sweep_all_but(pid_t spared);

/* Waits until `child` has ended or is stopped, without reaping it. Returns whether it has ended, and
 * it, or a child that it reaped, had reaped a child: the kernel adds the page faults of reaped
 * children to their parent, and every process has at least one. Children of a parent that ignores
 * SIGCHLD are not counted. */
int sweep_had_children(pid_t child);

/* To be told by a caller that stands behind a fence of signals: the process `outside` of it. */
void sweep_within_signal_scope(pid_t outside);

#endif
