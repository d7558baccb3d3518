/* Coverage of unmodified programs by breakpoints that are hit once.
 *
 * ddfuzz writes `int3` at the beginning of basic blocks into a copy of the code of the program and
 * of its libraries, a memory file (src/blocks/). Before `main`, that copy takes the place of their
 * code in the server and so in all that it forks. A process that hits a breakpoint notes it, puts
 * the original byte back into the file, and executes the instruction: no process hits that
 * breakpoint again until ddfuzz sets it again.
 *
 * Invariants:
 *   - a byte of the code is the program's own or, at the beginning of a block, `int3`
 *   - the program cannot change the file by its code: the code is mapped privately, so that a page
 *     that the program makes writable and changes is that process's own
 *   - nothing here allocates or uses thread-local memory */
#ifndef DDFUZZ_BLOCKS_H
#define DDFUZZ_BLOCKS_H

#include <signal.h>
#include <stdint.h>
#include <ucontext.h>

enum { MOST_CODE_SEGMENTS = 64 };

/* A segment of code. Addresses are those of the file of the program or library; offsets are those
 * of the memory file. They are multiples of the page size, except filled_from and filled_to. */
struct code_segment {
    uint64_t device, inode; /* of a library's file; 0 for the program */
    uint64_t key;           /* added to an address to tell apart the files */
    volatile uint64_t placed; /* set in the server: processes run the code of the memory file */
    uint64_t address, length;
    uint64_t filled_from, filled_to; /* range of its bytes that the file contains */
    uint64_t code;     /* offset of the code with breakpoints */
    uint64_t original; /* offset of the program's own code */
    uint64_t sites;    /* offset of a bit for each byte: whether it may have a breakpoint */
};

struct block_hit {
    uint64_t run;     /* number of the run, as in a request; 0: the server, before the fork point */
    uint64_t address; /* in the file of the program or library, plus its key */
};

/* The beginning of the memory file. */
struct block_table {
    volatile uint64_t armed; /* the program runs the code of this file */
    volatile uint64_t hit_count;
    uint64_t hits_at, most_hits; /* offset and size of the table of hits */
    uint64_t segment_count;
    struct code_segment segments[MOST_CODE_SEGMENTS];
};

/* In the server, once, before `main`: puts the code of the memory file FD_CODE in the place of the
 * program's and its libraries', if ddfuzz has passed such a file, and closes it. */
void blocks_arm(void);

/* In a fork that continues the program for the run with this number: installs the handler that
 * records hits of breakpoints. `context`: the state from which a handler continues the program, or
 * NULL if no handler does. */
void blocks_begin(uint64_t run, ucontext_t *context);

/* In a handler of SIGTRAP: records the hit of a breakpoint and restores the instruction, at which
 * the program continues when the handler returns. Returns 0 if no breakpoint of ddfuzz was hit. */
int blocks_hit(ucontext_t *context, uint64_t run);

/* Whether an address lies in the mapping of the memory file. */
int blocks_own(uintptr_t address);

#endif
