/* Wrappers of `wait` and its variants, and of functions that start processes: they report
 * whether the target had descendants, and whether a reaped child, or a child of one, died of a
 * crash. A run that calls none of them has no overhead. */
#ifndef DDFUZZ_WAIT_WRAPPERS_H
#define DDFUZZ_WAIT_WRAPPERS_H

#include "protocol.h"

/* In the server: maps memory for the reports of its descendants. On failure nothing is reported. */
void wait_wrappers_prepare(void);

/* In the server: copies the reports since the last call into the page. All descendants must have
 * ended. */
void wait_wrappers_collect(struct page *page);

/* In the server: drops the reports since the last call, which speak of no run. */
void wait_wrappers_forget(void);

/* The address of the memory of the reports; NULL if there is none. */
const volatile void *wait_wrappers_memory(void);

/* Reports that a process is started. */
void report_start(void);

/* Stores the next definition of the function `name` in `found`, a pointer to a function pointer;
 * ISO C has no such conversion. */
void wait_wrappers_find(const char *name, void *found);

#endif
