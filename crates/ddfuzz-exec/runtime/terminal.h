/* The target's terminal: an inherited descriptor becomes the controlling terminal of each run,
 * and its stdin, stdout and stderr. */
#ifndef DDFUZZ_TERMINAL_H
#define DDFUZZ_TERMINAL_H

/* Makes the child of a run a session leader if it will have a terminal (a session cannot take a
 * terminal that its process inherited from another session), else a process group leader. */
void terminal_lead(void);

/* Whether runs have a terminal. */
int terminal_is_there(void);

/* Makes the terminal the controlling terminal of the caller's session. Returns 0 or an errno. */
int terminal_take(void);

#endif
