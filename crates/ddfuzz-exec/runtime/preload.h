/* What is preloaded stays so over execve, without the target seeing it. */
#ifndef DDFUZZ_PRELOAD_H
#define DDFUZZ_PRELOAD_H

/* Takes out of the environment what a process before put there. */
void preload_forget(void);

#endif
