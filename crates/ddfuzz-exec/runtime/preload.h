/* Keeps the library preloaded across execve, invisibly for the target. */
#ifndef DDFUZZ_PRELOAD_H
#define DDFUZZ_PRELOAD_H

/* Removes from the environment what an earlier process has added. */
void preload_forget(void);

#endif
