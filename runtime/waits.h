/* Listens in at `wait` and its like, which the target calls: whether a child that it reaped, or
 * one of its children did, had died of a crash. */
#ifndef DDFUZZ_WAITS_H
#define DDFUZZ_WAITS_H

/* In the server: makes the place where its children tell. Without one they do not. */
void waits_prepare(void);

/* In the server: takes the signal of the first such death since the last call, or 0. */
int waits_collect(void);

/* In a child that goes on into the program. */
void waits_listen(void);

#endif
