/* The half of a server that all ways of execution share. No function here allocates: in an
 * injected server the heap belongs to the target, and each child must start with the same one. */
#ifndef DDFUZZ_SERVE_H
#define DDFUZZ_SERVE_H

#include <stddef.h>
#include <sys/types.h>

#include "protocol.h"

/* Maps the page; dies if that is impossible. `inherit`: children keep it mapped. */
void serve_map_page(int inherit);
extern struct page *serve_page;

void serve_hello(enum trouble trouble, int detail);

/* Waits for the next request. 0: ddfuzz has closed the pipe. */
int serve_next(struct request *request);

/* Waits for the child of a run, kills what it left behind, and answers. */
void serve_finish(const struct request *request, pid_t child);
void serve_reply(uint64_t seq, int status, int exec_errno, uint64_t cpu_us);

/* What each child does first: dies with its parent, leads a group, reads the input on stdin,
 * and forgets the protocol. */
void serve_become_child(pid_t parent);

/* Dies together with `parent`. */
void die_with(pid_t parent);

/* Kills and reaps all descendants: the caller must be a child subreaper. */
void sweep_descendants(void);

int read_whole(int fd, void *buffer, size_t length);
void write_whole(int fd, const void *buffer, size_t length);

#endif
