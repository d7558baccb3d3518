/* The request loop that all servers share. Invariant: no function here allocates. In an injected
 * server the heap belongs to the target, and each child must start with the same heap. */
#ifndef DDFUZZ_SERVE_H
#define DDFUZZ_SERVE_H

#include <stddef.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/types.h>

#include "protocol.h"

/* Whether a file is the device /dev/null. */
int serve_is_null(const struct stat *facts);

/* Maps the shared page; exits on failure. */
void serve_map_page(void);
/* In a child that is about to run the target: unmaps the page, so that the target cannot
 * overwrite it. */
void serve_unmap_page(void);
extern struct page *serve_page;

void serve_hello(enum trouble trouble, int detail);

/* Returns the flags of stdout's or stderr's open file when the server began to serve, before any run
 * could set others; -1 if it has not begun. */
int serve_output_flags(int fd);

/* Waits for the next request. Returns 0 if ddfuzz has closed the pipe. */
int serve_next(struct request *request);

/* In the child of a run: waits until ddfuzz has seized it. */
void serve_await_tracer(const struct request *request);

/* Waits for the child of a run, kills its leftover processes, and replies. */
void serve_finish(const struct request *request, pid_t child);
void serve_reply(uint64_t seq, int status, int exec_errno, uint64_t cpu_us);
/* Replies as serve_reply does; returns 0 if the target has closed the pipe. */
int serve_try_reply(uint64_t seq, int status, int exec_errno, uint64_t cpu_us);

/* Kills leftover processes of a run whose first process has ended with `status`, and records in the
 * page whether there were any. After an exit they have some time to end by themselves. */
void serve_sweep(int status);

/* Waits for the end of a child, as wait4 does; stops are ignored. */
int serve_await_end(pid_t child, struct rusage *usage);

/* Prepares a child for the target: puts the input on stdin, from its beginning, or takes the
 * terminal, and closes the protocol's descriptors. */
void serve_become_child(void);

uint64_t cpu_micros(const struct rusage *usage);

/* Makes the caller die together with `parent`. */
void die_with(pid_t parent);

int read_whole(int fd, void *buffer, size_t length);

#endif
