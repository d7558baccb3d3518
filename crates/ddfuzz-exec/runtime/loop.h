/* One process that runs many inputs: the mode `loop` of inject.c. */
#ifndef DDFUZZ_LOOP_H
#define DDFUZZ_LOOP_H

#include "entry.h"
#include "protocol.h"

/* In the server, before its first fork: maps the memory that all its children share with ddfuzz. */
void loop_prepare(const struct entry_point *entry);

/* In a child: serves this request and all that follow, until the target dies or ddfuzz is gone. */
_Noreturn void loop_serve(const struct entry_point *entry, struct request request);

/* In the server, for a request whose inputs have a process each (REQUEST_EACH), after the process
 * of its run number `done` has ended with `status`: returns whether the request's next run is to be
 * made. It is not if the last run did not end by an exit, or if no slot for counters is free. */
int loop_has_more(uint64_t done, int status);

/* In a child that has run nothing yet: makes run `number`, from 0, of the last request with
 * REQUEST_EACH, and ends. */
_Noreturn void loop_alone(const struct entry_point *entry, uint64_t number);

/* In a child that has run nothing yet: makes the only run of this request, under a tracer, and
 * ends. */
_Noreturn void loop_trace(const struct entry_point *entry, const struct request *request);

#endif
