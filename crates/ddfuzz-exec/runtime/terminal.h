/* A terminal of the target's own: a descriptor that the server is born with becomes the
 * controlling terminal of each run, and its stdin, stdout and stderr. */
#ifndef DDFUZZ_TERMINAL_H
#define DDFUZZ_TERMINAL_H

/* What the child of a run does first: it leads a session of its own where it will have a terminal
 * (a session cannot take a terminal that its process got from another), else a group. */
void terminal_lead(void);

/* Whether runs have a terminal. */
int terminal_is_there(void);

/* Lets the caller, which leads a session, take the terminal. Gives 0 or an errno. */
int terminal_take(void);

#endif
