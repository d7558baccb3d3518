/* What a dying process leaves in shared memory: registers, siginfo, its map and its stack, for
 * ddfuzz to unwind. The Rust side is crates/ddfuzz-triage/src/crash_copy.rs; both change together. */
#ifndef DDFUZZ_COPY_H
#define DDFUZZ_COPY_H

#include <signal.h>
#include <stdint.h>

#define COPY_MAGIC 0x44446370u

/* A memory file that the process is born with: struct copies, and behind it so many slots. It
 * stays open, for what the process may execute. */
enum { FD_COPY = 189 };
enum { COPY_SLOTS = 4, COPY_HEAD = 4096, COPY_SLOT = 2 << 20, COPY_SLOT_HEAD = 4096 };
enum { COPY_REGISTERS = 20, COPY_WINDOWS = 48 };

struct copies {
    volatile uint32_t magic; /* COPY_MAGIC, put there by ddfuzz */
    volatile uint32_t ready; /* whether a process has put its handler in place */
    volatile uint64_t taken; /* copies made; the next goes to slot taken % COPY_SLOTS */
    volatile uint64_t target_device, target_inode; /* what the first process executes */
};

/* A range of the process's memory. */
struct copy_window {
    uint64_t address, length; /* where it was, in bytes */
    uint64_t at;              /* where it stands, from the slot's beginning */
};

struct copy_slot {
    volatile uint64_t number; /* from 1; 0 while what follows is not whole */
    int32_t pid, tid;
    int32_t signal, code;
    uint64_t address;
    uint64_t entry;           /* of the program, as the auxiliary vector names it */
    uint64_t device, inode;   /* of the program */
    volatile uint32_t fatal;  /* the signal that the process dies of, where that is certain */
    volatile uint32_t whole;  /* all was copied */
    uint64_t registers[COPY_REGISTERS]; /* rax … gs_base, see crates/ddfuzz-triage/src/crash_copy.rs */
    uint64_t maps_at, maps_length;      /* the text of /proc/self/maps */
    volatile uint64_t windows;
    struct copy_window window[COPY_WINDOWS];
};

/* Copies; never allocates, never unwinds, reads nothing that could fault unguarded. First all that
 * needs no system call (NULL where nothing is shared), then the rest. */
struct copy_slot *copy_begin(int signal, const siginfo_t *info, const void *context, int fatal);
/* The process dies of this signal in its own handler for the one that was copied last. */
void copy_dies_of(int signal);
void copy_rest(struct copy_slot *slot);

/* Whether the copying itself has faulted; then this does not return. */
void copy_guard(void *context);

/* Maps the memory; 0 where this process is not to be copied. */
int copy_prepare(void);

/* A system call that touches no errno. */
long copy_call(long number, long a, long b, long c, long d);

#endif
