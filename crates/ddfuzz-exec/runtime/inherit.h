/* What is preloaded stays so over execve, without the target seeing it. */
#ifndef DDFUZZ_INHERIT_H
#define DDFUZZ_INHERIT_H

/* Takes out of the environment what a process before put there. */
void inherit_forget(void);

#endif
