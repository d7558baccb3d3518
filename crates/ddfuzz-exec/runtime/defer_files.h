/* Files before the fork point of an injected server (defer.h): which of them are the same at the
 * start of each run, and those that the program has opened. */
#ifndef DDFUZZ_DEFER_FILES_H
#define DDFUZZ_DEFER_FILES_H

/* Reads which files are input (DEVICE:INODE,... in decimal), and finds what else may change from
 * run to run; returns 0 if that cannot be found out. */
int files_begin(const char *inputs);

/* Whether what a path names is the same at the start of each run. True also for a path that does
 * not exist, or that the user may not look up. */
int files_is_constant(long directory, long path, int flags);

/* Opens a file to read, and stores the descriptor, or a negative errno, in `*result`. Returns 0,
 * and does nothing, if a run may change the file, if `flags` permit to write, or if too many files
 * are open. */
int files_open(long directory, long path, long flags, long *result);

/* Whether the program has opened this descriptor by files_open. */
int files_is_opened(long fd);

/* Forgets an opened descriptor, which is about to be closed; returns 0 if there is none. */
int files_forget(long fd);

/* Whether a descriptor is stdout or stderr, and its file status is the same in each run: true
 * unless it is a regular file, whose size changes. */
int files_is_plain_output(long fd);

/* Whether a descriptor is an output that leads to /dev/null. */
int files_is_null_output(long fd);

/* Notes offsets and flags of the opened files at the fork point, and sets them back in a child:
 * another child may have changed them. */
void files_note(void);
void files_set_back(void);

#endif
