/* Keeps signals among a process and its descendants. */
#ifndef DDFUZZ_SIGNAL_SCOPE_H
#define DDFUZZ_SIGNAL_SCOPE_H

/* From here on, signals of the caller and of all that descend from it reach only those of them
 * that enter no fence further out; without, kill(-1) would end other targets of the same user,
 * and, where ddfuzz is not root, ddfuzz and the user's session. 0 where the kernel does not know
 * how (before Linux 6.12), or permits no more of it. `files_too`: a fence around files will follow. */
int limit_signal_scope(int files_too);

/* Whether a ruleset can be one: since Linux 6.12. */
int signal_scope_supported(void);

#endif
