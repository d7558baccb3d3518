/* Files before the fork point of an injected server (defer.h): which of them are the same at the
 * start of each run, and those that the program has opened. */
#ifndef DDFUZZ_DEFER_FILES_H
#define DDFUZZ_DEFER_FILES_H

/* Reads which files are input (DEVICE:INODE,... in decimal), and what else changes; returns 0 if
 * that cannot be found out. */
int files_begin(const char *inputs);

/* Whether what a path names is the same at the start of each run; what is missing is, and what the
 * user cannot look up. */
int files_is_constant(long directory, long path, int flags);

/* Opens a file to read, if no run can change it; returns 0 if it may. */
int files_open(long directory, long path, long flags, long *result);

/* Whether the program has opened this descriptor by the function above. */
int files_is_opened(long fd);

/* Forgets an opened descriptor, which is about to be closed; returns 0 if there is none. */
int files_forget(long fd);

/* Whether a descriptor is an output whose facts are the same in each run: no file, which has a
 * size. */
int files_is_plain_output(long fd);

/* Whether a descriptor is an output that leads to /dev/null. */
int files_is_null_output(long fd);

/* Notes offsets and flags of the opened files at the fork point, and sets them back in a child:
 * another child may have changed them. */
void files_note(void);
void files_set_back(void);

#endif
