/* The snapshot that a crashing process leaves in shared memory: registers, siginfo, memory map
 * and stack, for ddfuzz to unwind. The Rust side is crates/ddfuzz-triage/src/crash_copy.rs; both
 * change together. */
#ifndef DDFUZZ_SNAPSHOT_H
#define DDFUZZ_SNAPSHOT_H

#include <signal.h>
#include <stdint.h>

#define SNAPSHOT_MAGIC 0x44446370u

/* The inherited memory file: struct snapshots, followed by the slots. It stays open for programs
 * that the process executes. */
enum { FD_SNAPSHOT = 189 };
enum { SNAPSHOT_SLOTS = 4, SNAPSHOT_HEAD = 4096 };
enum { SNAPSHOT_SLOT = 2 << 20, SNAPSHOT_SLOT_HEAD = 4096 };
enum { SNAPSHOT_REGISTERS = 20, SNAPSHOT_WINDOWS = 48 };

struct snapshots {
    volatile uint32_t magic; /* SNAPSHOT_MAGIC, written by ddfuzz */
    volatile uint32_t ready; /* whether a process has installed its handler */
    volatile uint64_t taken; /* copies made; the next goes to slot taken % SNAPSHOT_SLOTS */
    volatile uint64_t target_device, target_inode; /* what the first process executes */
};

/* A range of the process's memory. */
struct snapshot_window {
    uint64_t address, length; /* address and length in the process, in bytes */
    uint64_t at;              /* offset of the copy in the slot */
};

struct snapshot_slot {
    volatile uint64_t number; /* from 1; 0 while the slot is incomplete */
    int32_t pid, tid;
    int32_t signal, code;
    uint64_t address;
    uint64_t entry;           /* entry point of the program, from the auxiliary vector */
    uint64_t device, inode;   /* file of the program */
    volatile uint32_t fatal;  /* the signal that certainly kills the process, or 0 */
    volatile uint32_t whole;  /* whether everything was copied */
    uint64_t registers[SNAPSHOT_REGISTERS]; /* rax … gs_base, as in copied.rs */
    uint64_t maps_at, maps_length;      /* the text of /proc/self/maps */
    volatile uint64_t windows;
    struct snapshot_window window[SNAPSHOT_WINDOWS];
};

/* Take a snapshot. Invariant: these functions never allocate, never unwind, and never fault
 * unguarded. snapshot_begin copies everything that needs no system call, and returns NULL
 * without shared memory; snapshot_rest copies the rest. */
struct snapshot_slot *snapshot_begin(int signal, const siginfo_t *info, const void *context,
                                     int fatal);
/* Records that the process dies of this signal in its own handler for the signal of the last
 * snapshot. */
void snapshot_dies_of(int signal);
void snapshot_rest(struct snapshot_slot *slot);

/* Recovers if taking the snapshot has itself faulted; then it does not return. */
void snapshot_guard(void *context);

/* Maps the memory; returns 0 if this process takes no snapshots. */
int snapshot_prepare(void);

/* A system call that leaves errno unchanged. */
long raw_call(long number, long a, long b, long c, long d);

#endif
