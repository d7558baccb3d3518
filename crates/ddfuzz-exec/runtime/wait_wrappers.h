/* Listens in at `wait` and its like, and at what starts processes, which the target calls: whether
 * it has descendants, and whether a child that it reaped, or one of its children did, had died
 * of a crash. This costs a run that calls none of them nothing. */
#ifndef DDFUZZ_WAIT_WRAPPERS_H
#define DDFUZZ_WAIT_WRAPPERS_H

#include "protocol.h"

/* In the server: makes the place where its descendants tell. Without one they do not. */
void wait_wrappers_prepare(void);

/* In the server: puts into the page what was told since the last call. Nobody may be left to
 * tell more. */
void wait_wrappers_collect(struct page *page);

/* Tells that a process is started. */
void report_start(void);

/* Looks up the definition of `name` that ours hides into `found`, a pointer to a function, to
 * which ISO C has no conversion. */
void wait_wrappers_find(const char *name, void *found);

#endif
