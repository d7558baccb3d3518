/* Keeps signals among a process and its descendants. */
#ifndef DDFUZZ_FENCE_H
#define DDFUZZ_FENCE_H

/* From here on, signals of the caller and of all that descend from it reach only those of them
 * that enter no fence further out; without, kill(-1) would end other targets of the same user,
 * and, where ddfuzz is not root, ddfuzz and the user's session. 0 where the kernel does not know
 * how (before Linux 6.12), or permits no more of it. */
int fence_signals(void);

#endif
