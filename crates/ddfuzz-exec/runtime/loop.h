/* One process that runs many inputs: the mode `loop` of inject.c. */
#ifndef DDFUZZ_LOOP_H
#define DDFUZZ_LOOP_H

#include "entry.h"
#include "protocol.h"

/* In the server, before its first fork: maps the memory that all its children share with ddfuzz. */
void loop_prepare(const struct entry_point *entry);

/* In a child: serves this request and all that follow, until the target dies or ddfuzz is gone. */
_Noreturn void loop_serve(const struct entry_point *entry, struct request request);

/* In a child that has run nothing yet: makes the one run of this request under a tracer. */
_Noreturn void loop_trace(const struct entry_point *entry, const struct request *request);

#endif
