/* The memory of the runner: what the parts of restore.c share.
 *
 * Invariants:
 *   - `fixed` is written between runs only; while the program runs it is read-only memory, as are the
 *     copies of the program's memory and the writable data of this library
 *   - `run` is the only writable state that decides anything. It carries a checksum while the
 *     program runs: who has written into it is killed
 *   - nothing here allocates, uses errno or calls a function of the C library that makes a system
 *     call: the thread's memory is the program's */
#ifndef DDFUZZ_RESTORE_STATE_H
#define DDFUZZ_RESTORE_STATE_H

#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/types.h>

#include "defer.h"
#include "protocol.h"
#include "restore.h"

/* The reserve: far below what the kernel gives out, so that the program's mappings lie where they
 * lie without it. */
#define RESERVE 0x100000000000ul
enum {
    AT_FIXED = 0,
    FIXED_SIZE = 1 << 18,
    AT_RUN = 1 << 19,
    RUN_SIZE = 1 << 16,
    AT_FRAME = (1 << 19) + (1 << 17), /* the signal frame with which a run begins */
    FRAME_SIZE = 1 << 15,
    AT_STACK = AT_FRAME + (1 << 16), /* of the handlers; below it lies a hole */
    STACK_SIZE = 1 << 17,
    AT_GATE_STACK = (1 << 19) + (3 << 17), /* of calls that come by a jump; below it lies a hole */
    GATE_STACK_SIZE = 1 << 16,
    AT_PAGES = 1 << 20,
    AT_PAGE_FLAGS = 1 << 21,
    AT_INPUTS = 1 << 24,
    MAPPED_INPUTS = 4 << 20, /* bytes of the batch of inputs that are mapped */
    AT_COPIES = 1 << 26,
    MOST_COPIED = 1 << 26,    /* bytes of writable memory, at most */
    MOST_ALWAYS_COPIED = 4 << 20, /* the same on a kernel that does not tell which were written */
    RESERVE_SIZE = 1 << 28,
    PAGE = 4096,
    FPU_SIZE = 16 << 10,
};

/* The top of the stack at AT_GATE_STACK, so that calls are aligned. */
#define GATE_STACK_TEXT "0x1000000efff8"
_Static_assert(RESERVE + AT_GATE_STACK + GATE_STACK_SIZE - 8 == 0x1000000efff8, "as in the text");

enum {
    SIGNALS = 65,
    MOST_RANGES = 96,
    MOST_OWN = 64,
    MOST_LOST = 16,
    MOST_HOT = 256,
    MOST_ORIGINALS = 40,
    MOST_SITES = 1024,
    MOST_SITES_PATCHED = 64,
    FDS = FD_LOWEST, /* descriptors that the program may use; the others are ddfuzz's */
};

struct kernel_signal_action {
    void (*handler)(int, siginfo_t *, void *);
    unsigned long flags;
    void (*restorer)(void);
    unsigned long mask;
};

/* A range of addresses. */
struct span {
    uintptr_t begin, end;
};

/* Writable memory of the program, and where its copy lies. */
struct kept_range {
    uintptr_t begin, end, copy;
    int32_t protection;
    int32_t is_plain; /* anonymous memory that is neither the heap nor the stack */
};

/* Pages that nearly each run writes, which are copied after each, and where their copy lies. */
struct hot_span {
    uintptr_t begin, end, copy;
};

/* A descriptor of the program at the fork point. */
struct original {
    int32_t fd, backup, flags, status; /* of F_GETFD and F_GETFL */
    int64_t offset; /* -1 where it has none */
};

struct file_identity {
    dev_t device;
    ino_t inode;
};

/* What the program believes of its signals: the kernel has the runner's handlers. */
struct signals {
    struct kernel_signal_action actions[SIGNALS];
    unsigned long mask;
    stack_t stack;
};

enum phase { PUTTING_BACK, RUNNING, IN_CALL };

/* What a run has changed, and the request that it belongs to. The checksum is that of all before
 * the arrays, and of their elements in use. */
struct run_state {
    uint64_t checksum;
    struct request request;
    uint64_t index;    /* of the run within its request */
    uint64_t lengths[2]; /* of the files with the input; UINT64_MAX: not known */
    uint64_t runs;
    uint64_t faults;   /* page faults up to the end of the run before; UINT64_MAX: not known */
    uint64_t captured; /* the outputs lead to the capture */
    uint64_t phase;    /* of enum phase */
    uint64_t brk;
    uint64_t mode_mask; /* umask */
    uint64_t touched[(FDS + 63) / 64]; /* descriptors that were opened, closed or changed */
    uint64_t status_changed;           /* F_SETFL was called */
    uint64_t discarded;                /* old memory was given back by madvise */
    uint64_t moved;                    /* the working directory was changed */
    uint64_t signals_changed;          /* 0: `signals` is not in use */
    uint64_t own_count, lost_count;
    uint64_t unmapped_count; /* of what is lost; all behind that can only not be accessed */
    struct span own[MOST_OWN];   /* mappings of this run */
    struct span lost[MOST_LOST]; /* memory that is older than the run and that it has unmapped */
    struct signals signals;
};

/* A system call of the C library that has become a jump. */
struct patched_site {
    uintptr_t after; /* the address behind it; 0 for a call that does not return */
    long number;     /* of the call */
    long is_open;    /* the jump stands for `mov $AT_FDCWD, %edi` */
};

struct fixed_state {
    ucontext_t context; /* the program at the fork point */
    unsigned char fpu[FPU_SIZE] __attribute__((aligned(64)));
    size_t fpu_size;
    int32_t error; /* its errno */
    struct kept_range ranges[MOST_RANGES];
    uint32_t range_count;
    struct hot_span hot[MOST_HOT];
    uint32_t hot_count;
    uintptr_t data_begin, data_end; /* writable memory of this library */
    uintptr_t rseq;                 /* 32 bytes that the kernel writes; 0: none */
    uintptr_t fs, gs, brk;
    uintptr_t exit_function; /* _exit of the C library; 0: it stays as it is */
    uintptr_t write_function; /* the function write that the program calls */
    int32_t exit_is_known;   /* it is in the text of the C library */
    int32_t reads_bases;     /* programs may read the bases of FS and GS by an instruction */
    struct span below_stack; /* where the stack may grow; the end is its begin */
    struct signals signals;
    unsigned mode_mask;
    struct original originals[MOST_ORIGINALS];
    uint32_t original_count;
    int32_t outputs[2];    /* duplicates of stdout and stderr */
    unsigned char is_null_output[3]; /* for each standard descriptor: it leads to /dev/null */
    int32_t uffd, pagemap; /* uffd -1: all memory is copied after each run */
    dev_t proc_device;
    int32_t directory; /* the working directory, opened */
    struct file_identity directory_identity, root_identity;
    uintptr_t sites[MOST_SITES]; /* system calls of the C library that may become jumps */
    uint32_t site_count;
    struct patched_site patched[MOST_SITES_PATCHED];
    uint32_t patched_count;
    int32_t has_shadow; /* a shadow stack */
};

#define FIXED ((struct fixed_state *)(RESERVE + AT_FIXED))
#define RUN ((struct run_state *)(RESERVE + AT_RUN))

/* A system call that the filter has stopped. */
struct stopped_call {
    long number, a[6];
};

/* restore.c */

/* Calls a function on the stack whose top is at `top`. */
_Noreturn void restore_on_stack(uintptr_t top, void (*function)(void));
/* Returns from a signal handler (defer.c). */
void defer_return(void);
/* The handlers of a stopped call and of a crash. */
void run_on_call(int signal, siginfo_t *info, void *data);
void run_on_crash(int signal, siginfo_t *info, void *data);
/* Serves requests; on the stack of the handlers, once the runner is set up. */
void run_serve(void);
/* Writes to the server or to ddfuzz; the runner ends where they are gone. */
void run_write_whole(int fd, const void *bytes, size_t length);
/* Makes FIXED writable for a moment, and read-only again. */
void fixed_open(int on);
/* Reads the bases of the segments FS, which is the thread pointer, and GS. */
void run_get_bases(uintptr_t *fs, uintptr_t *gs);

/* restore_setup.c */

/* Tells the server whether the runner can run the program; ends the runner if it cannot. */
void setup_tell(enum unfit unfit);

/* restore_calls.c */

/* When the filter lets a call pass. */
enum condition {
    NEVER,
    ALWAYS,
    OWN_FD,      /* the first argument is a descriptor that the program may use */
    OUTPUT,      /* the first argument is stdout or stderr, which lead to /dev/null or the capture */
    WALL_CLOCK,  /* the first argument is a clock that no process has for itself */
    FACTS_OF_FD, /* newfstatat of a descriptor */
    ASKS_FD,     /* fcntl that only asks */
    ASKS_OUTPUT, /* ioctl that asks for a terminal or for bytes to be read */
    ASKS_LIMIT,  /* prlimit64 that sets nothing */
    WAKES,       /* futex that wakes */
};

/* A line of the table of system calls; 0: there is no such line. */
int calls_line(size_t line, long *number, enum condition *passes);
/* Performs a stopped call and notes what it changes; 0: the run must be refused. */
int calls_perform(const struct stopped_call *call, long *result);
/* Whether the filter stops calls of this number, and a handler performs all of them. */
int calls_are_tracked(long number);
/* Undoes what calls of the run have changed; 0: this failed. */
int calls_undo(void);
/* Sets back the flags of open files, which forks share with the runner; 0: this failed. */
int calls_reset_status(void);

/* restore_paths.c */

/* The facts of a path, or a negative errno in `error`; returns 0 if it leads into /proc by a name
 * that does not show it. */
int paths_facts(long directory, long path, struct stat *facts, long *error);
/* Whether opening a file, and then reading from it or (if `writes`) writing to it, changes nothing
 * that another run or process could see. */
int paths_is_harmless(const struct stat *facts, int writes);
/* Whether the program may move to a directory, from which calls_undo moves back: one of the same file
 * system, below which no name leads to what is the runner's, as below the root. */
int paths_may_move_to(const struct stat *facts);

/* restore_filter.c */

/* Installs the filter of system calls; returns 0 or an errno. */
int filter_install(void);

/* restore_sites.c */

/* In the server: finds the sites in the text of the C library. */
void sites_find(uintptr_t begin, uintptr_t end);
/* In the runner, once: makes the function _exit a jump, if it may be one. */
void sites_rewrite_exit(void);
/* In the runner, once: makes the site in the function write a jump, if there is one. */
void sites_rewrite_write(void);
/* In the server: the address at which a program continues that stands at `address`: the beginning
 * of the site, if that is its second instruction. */
uintptr_t sites_begin(uintptr_t address);
/* In the runner: makes the site before an address a jump, if it may be one. */
void sites_rewrite(uintptr_t after);

/* restore_memory.c */

/* In the server: finds and copies the program's writable memory. */
enum unfit memory_copy(void);
/* In the runner: makes the kernel record which pages are written. */
void memory_watch(void);
/* Puts back what the run has written; 0: this failed. */
int memory_restore(void);
/* Returns the number of bytes of the program's memory that are copied. */
size_t memory_size(void);
/* Returns the range of plain memory at the fork point that contains the span; NULL if none does. */
const struct kept_range *memory_plain(uintptr_t begin, uintptr_t length);
/* Makes a span of plain memory inaccessible, in place of unmapping it, until the run maps other
 * memory; 0: this is impossible. */
int memory_lose(uintptr_t begin, uintptr_t length);
/* Unmaps what the run has lost, so that the kernel can map other memory there; 0: this failed. */
int memory_unmap_lost(void);

/* Raw system calls with fewer arguments. */
static inline long call1(long number, long a)
{
    return defer_call(number, a, 0, 0, 0, 0, 0);
}

static inline long call2(long number, long a, long b)
{
    return defer_call(number, a, b, 0, 0, 0, 0);
}

static inline long call3(long number, long a, long b, long c)
{
    return defer_call(number, a, b, c, 0, 0, 0);
}

static inline long call4(long number, long a, long b, long c, long d)
{
    return defer_call(number, a, b, c, d, 0, 0);
}

static inline void copy_bytes(void *to, const void *from, size_t length)
{
    __asm__ volatile("rep movsb" : "+D"(to), "+S"(from), "+c"(length) : : "memory");
}

static inline int is_one_of_fds(long fd)
{
    return (unsigned int)fd < FDS;
}

#endif
