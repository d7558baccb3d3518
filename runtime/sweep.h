/* Ends whatever a run, or a whole server, has left behind. */
#ifndef DDFUZZ_SWEEP_H
#define DDFUZZ_SWEEP_H

/* Kills and reaps all descendants: the caller must be a child subreaper. Gives up on processes
 * that do not die of SIGKILL (a dead file system holds them), so that nobody waits for ever. */
void sweep_descendants(void);

#endif
