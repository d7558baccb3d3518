/* Kills the leftover processes of a run, or of a whole server. */
#ifndef DDFUZZ_SWEEP_H
#define DDFUZZ_SWEEP_H

#include <stddef.h>
#include <sys/types.h>

/* Kills and reaps all descendants; the caller must be a child subreaper. Gives up on processes
 * that do not die of SIGKILL, because of a dead file system for example. Returns whether there
 * were any. */
int sweep_descendants(void);

/* Kills and reaps all descendants as sweep_descendants does, but gives them up to 25 milliseconds
 * to end: one of them may be about to crash. */
int sweep_descendants_later(void);

/* Reads /proc/PID/stat without allocating; returns its fields from the fourth on, or NULL. */
char *sweep_read_stat(pid_t pid, char *buffer, size_t size);

/* Kills all descendants except the child `spared`. Returns 0 if it had to be killed, too. */
int sweep_all_but(pid_t spared);

/* Waits until `child` has ended or is stopped, without reaping it. Returns whether it has ended, and
 * it, or a child that it reaped, had reaped a child: the kernel adds the page faults of reaped
 * children to their parent, and every process has at least one. Children of a parent that ignores
 * SIGCHLD are not counted. */
int sweep_had_children(pid_t child);

/* Tells sweep_descendants that the caller has a signal scope, which does not include the process
 * `outside`. */
void sweep_within_signal_scope(pid_t outside);

/* Kills all descendants but the child `*spared`, unless that cannot be told from the others: then
 * it is killed, too. Sets `*spared` to -1 if it has ended. Returns whether there were others. */
int sweep_others(pid_t *spared);

#endif
