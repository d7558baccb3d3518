/* Complaints about the input, on stderr. */
#ifndef DDFUZZ_COMPLAIN_H
#define DDFUZZ_COMPLAIN_H

/* Starts a run of the tool `name`: no complaint so far. */
void complain_as(const char *name);

/* Writes one line, after the tool's name. Only the first few of a run are written: random input
 * gives thousands, and each is a system call. */
void complain(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* How many complaints this run has, written or not. */
unsigned complaints(void);

#endif
