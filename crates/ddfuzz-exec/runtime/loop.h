/* One process that runs many inputs: the mode `loop` of inject.c. */
#ifndef DDFUZZ_LOOP_H
#define DDFUZZ_LOOP_H

#include "entry.h"
#include "protocol.h"

/* In the server, before its first fork: maps the memory that all its children share with ddfuzz. */
void loop_prepare(const struct entry_point *entry);

/* In a child: serves this request and all that follow, until the target dies or ddfuzz is gone. */
_Noreturn void loop_serve(const struct entry_point *entry, struct request request);

/* In the server, after a process has made a run and ended with `status`: whether the next run of a
 * request whose inputs have a process each is to be made, after `done` runs. Not so after a run
 * that did not end by itself, or without a slot for its counters. */
int loop_has_more(uint64_t done, int status);

/* In a child that has run nothing yet: makes run `number` of that request, and ends. */
_Noreturn void loop_alone(const struct entry_point *entry, uint64_t number);

/* In a child that has run nothing yet: makes the one run of this request under a tracer. */
_Noreturn void loop_trace(const struct entry_point *entry, const struct request *request);

#endif
