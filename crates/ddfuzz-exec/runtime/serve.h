/* The half of a server that all ways of execution share. No function here allocates: in an
 * injected server the heap belongs to the target, and each child must start with the same one. */
#ifndef DDFUZZ_SERVE_H
#define DDFUZZ_SERVE_H

#include <stddef.h>
#include <sys/resource.h>
#include <sys/types.h>

#include "protocol.h"

/* Maps the page; dies if that is impossible. */
void serve_map_page(void);
/* In a child that is about to run the target, which must not scribble on it. */
void serve_unmap_page(void);
extern struct page *serve_page;

void serve_hello(enum trouble trouble, int detail);

/* Waits for the next request. 0: ddfuzz has closed the pipe. */
int serve_next(struct request *request);

/* In the child of a run: waits until ddfuzz has seized it. */
void serve_await_tracer(const struct request *request);

/* Waits for the child of a run, kills what it left behind, and answers. */
void serve_finish(const struct request *request, pid_t child);
void serve_reply(uint64_t seq, int status, int exec_errno, uint64_t cpu_us);
/* The same where the pipe may be closed although ddfuzz lives. 0: it is. */
int serve_try_reply(uint64_t seq, int status, int exec_errno, uint64_t cpu_us);

/* Kills what a run has left behind; that there was something stands in the page. */
void serve_sweep(void);

/* Waits for the end of a child, as wait4 does; stops are passed over. */
int serve_await_end(pid_t child, struct rusage *usage);

/* What each child does before it runs the target: puts the input on stdin, from its beginning,
 * or takes its terminal, and forgets the protocol. */
void serve_become_child(void);

uint64_t cpu_micros(const struct rusage *usage);

/* Dies together with `parent`. */
void die_with(pid_t parent);

int read_whole(int fd, void *buffer, size_t length);

#endif
