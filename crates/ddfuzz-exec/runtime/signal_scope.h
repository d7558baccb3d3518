/* Confines signals to a process and its descendants. */
#ifndef DDFUZZ_SIGNAL_SCOPE_H
#define DDFUZZ_SIGNAL_SCOPE_H

/* From now on, signals of the caller and its descendants reach only processes in the same
 * Landlock signal scope or in a nested one. Otherwise kill(-1) of a target would end other
 * targets of the same user, and for a user other than root, ddfuzz and the user's session.
 * Returns 0 if the kernel does not support it (before Linux 6.12) or allows no further ruleset.
 * `files_too`: a ruleset for files will follow. */
int limit_signal_scope(int files_too);

/* Whether the kernel supports signal scopes (since Linux 6.12). */
int signal_scope_supported(void);

#endif
