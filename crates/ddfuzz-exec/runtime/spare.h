/* A child forked ahead of its turn, and how it is given it. There is one at a time. */
#ifndef DDFUZZ_SPARE_H
#define DDFUZZ_SPARE_H

/* In the server, before the fork. 0: there can be none. */
int spare_prepare(void);
/* In the child; ends it when the server is gone. */
void spare_await_turn(void);
/* In the server: lets the child go on. 0: it is dead. */
int spare_begin(void);
/* In the server, once the child goes on or is dead. */
void spare_dismiss(void);

#endif
