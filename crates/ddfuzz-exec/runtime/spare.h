/* A spare child, forked before it is needed, and how it is started. There is at most one. */
#ifndef DDFUZZ_SPARE_H
#define DDFUZZ_SPARE_H

/* In the server, before the fork. Returns 0 if no spare child is possible. */
int spare_prepare(void);
/* In the child: waits for its turn; exits if the server is gone. */
void spare_await_turn(void);
/* In the server: starts the child. Returns 0 if the child is dead. */
int spare_begin(void);
/* In the server, after the child has started or died. */
void spare_dismiss(void);

#endif
