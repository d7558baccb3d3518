/* The protocol between ddfuzz and its servers. The Rust side is
 * crates/ddfuzz-exec/src/protocol.rs; both change together. The version in the hello rejects a
 * server of another version. */
#ifndef DDFUZZ_PROTOCOL_H
#define DDFUZZ_PROTOCOL_H

#include <stdint.h>

#define DDFUZZ_MAGIC 0x44446675u
#define DDFUZZ_VERSION 10u

/* Numbers of the file descriptors that a server inherits. They are high, so that a target that
 * numbers its own descriptors from 3 is not disturbed. */
enum {
    FD_SECOND = 180,   /* runner (restore.h): the second of two input files, opened for writing */
    FD_CODE = 181,     /* memfd with the program's code and its breakpoints (blocks.h) */
    FD_WRITER = 182,   /* runner: the input's file, or the first of two, opened for writing */
    FD_BATCH = 183,    /* runner: memfd with the inputs of a request */
    FD_CAPTURES = 184, /* runner: pipes for stdout and, at the next number, stderr */
    FD_LOWEST = FD_SECOND,
    FD_FILTERS = 186,  /* sandbox: memfd with system call filters, each after its length */
    FD_RULES = 187,    /* sandbox: a Landlock ruleset */
    FD_TERMINAL = 188, /* the target's terminal (terminal.h); 189 is FD_SNAPSHOT (snapshot.h) */
    FD_REQUEST = 190,  /* read end: struct request */
    FD_REPLY = 191,    /* write end: struct hello once, then struct reply */
    FD_INPUT = 192,    /* memfd with the input, opened read-only */
    FD_PAGE = 193,     /* memfd of struct page */
    FD_SUPERVISOR_PIPE = 194, /* the supervisors' socket; its end of file means that ddfuzz is gone */
    FD_TURN = 196, /* read end for a spare child (spare.h); 195 is FD_OBSERVED */
    FD_GIVE_TURN = 197,
    FD_FIRST = FD_REQUEST,
    FD_LAST = FD_SUPERVISOR_PIPE
};

/* The byte at which an input is split into two files; it is in neither. */
#define SEPARATOR 0x1c

/* Why a server cannot serve. `detail` is an errno, or 0. */
enum trouble {
    TROUBLE_NONE = 0,
    TROUBLE_EXEC = 1,        /* the program could not be executed */
    TROUBLE_THREADS = 2,     /* the program had threads before main */
    TROUBLE_SETUP = 3,       /* limits, identity or directory could not be set */
    TROUBLE_CHILDREN = 4,    /* the program had child processes before main */
    TROUBLE_DESCRIPTORS = 5, /* the program closed descriptors of the protocol before main */
    TROUBLE_UNFIT = 6,       /* no runner can run the program; `detail` is an `enum unfit` */
};

/* Value of `detail`: the server forks before `main`, or runs no `main`. */
#define FORK_AT_MAIN (-1)

struct hello {
    uint32_t magic;
    uint32_t version;
    int32_t pid;
    uint32_t trouble;
    int32_t detail; /* an errno; without trouble, where the server forks: FORK_AT_MAIN, or the number of
                       the system call before which it forks, or FORK_AT_CLOCK (defer.h) */
    uint32_t reserved;
};

struct request {
    uint64_t seq;   /* number of the request's first run; a server's runs are numbered from 1 */
    uint64_t count; /* bytes of the input; in a loop or a runner, inputs, each with an entry in the
                       page; 0 in a loop ends the process */
    uint64_t flags; /* of enum request_flags */
};

enum request_flags {
    REQUEST_RANDOM_ADDRESSES = 1, /* tracing: address-space layout randomization is on */
    REQUEST_COUNTERS = 2,         /* loop: keep the counters of each run */
    REQUEST_NOVEL = 4,            /* loop: keep the counters of runs that reach something new */
    REQUEST_COMPARISONS = 8,      /* loop: report comparisons */
    REQUEST_LAST = 32,            /* loop: the process ends after this request */
    REQUEST_TRACED = 16,          /* fork server, or a loop's process that has run nothing: the
                                     run waits to be traced */
    REQUEST_FORKED = 64,          /* runner: a fork makes the run */
    REQUEST_IN_PLACE = 128,       /* runner: the only input is where the program reads it */
    REQUEST_CAPTURED = 256,       /* runner: the outputs lead to FD_CAPTURES; a run that the runner
                                     refuses is not made */
    REQUEST_QUIET = 512,          /* loop: in a process that begins with this request, stderr leads
                                     where stdout does */
    REQUEST_EACH = 1024,          /* loop: each input has a new process */
    REQUEST_TWO_FILES = 2048      /* runner: an input is split into two files */
};

struct reply {
    uint64_t seq;       /* number of the last run that the reply covers */
    int32_t status;     /* as wait(2) gives it; the process id where cpu_us is CPU_READY */
    int32_t exec_errno; /* the errno if the program could not be executed, else 0 */
    uint64_t cpu_us;    /* user and system time of the run; 0 in a loop */
};

/* Value of cpu_us: a child is ready to be traced and waits for a byte to continue. */
#define CPU_READY UINT64_MAX

enum { DEPTHS = 1024 };

/* The beginning of the memory that is shared with ddfuzz while a run is under way. */
struct page {
    volatile uint64_t started;   /* number of the last run that has begun */
    volatile uint64_t ended;     /* number of the last run that has been answered */
    volatile int32_t exec_errno; /* why the last run could not begin, or 0 */
    volatile int32_t forked;     /* whether the last run had descendants */
    volatile int32_t crashed;    /* signal of a crashed descendant that the target reaped, or 0 */
    volatile int32_t child;      /* the process that runs the inputs of a loop or a runner */
    volatile uint64_t counters;  /* in a loop: address of its coverage counters, or 0 */
    volatile uint32_t refused;   /* why the runner has refused the last run, which a fork has made
                                    (restore.h), or 0 */
    struct request each;         /* in a loop: the last request whose inputs have a process each */
    uint8_t depths[DEPTHS];      /* in a loop: a bit for each depth of the stack, in units of 16 bytes
                                    and modulo the number of bits, that a run had whose counters were
                                    to be kept if they are new */
};

/* The tables of a loop follow. At ENTRIES: an entry for each input of a request. At COUNTERS:
 * the counter ranges that all runs so far have reached (a byte for each counter, a bit for each
 * range of values). After that, up to the end: slots with the counters of single runs. Reached
 * ranges and slots have the length of the counters, and begin at multiples of 64 bytes. There are
 * fewer slots than entries: few runs reach something new. */
enum { ENTRIES = 4096, MOST_INPUTS = 1024, COUNTERS = ENTRIES + 40 * MOST_INPUTS };

struct entry {
    uint64_t offset, length; /* position of the input in FD_INPUT, in bytes */
    int32_t status;          /* as wait(2) gives it, if the run returned normally */
    uint32_t slot;           /* number of the slot with its counters, from 1; 0 for none */
    uint64_t cpu_us;         /* CPU time where REQUEST_COUNTERS is set, else 0 */
    uint64_t stack_depth;    /* 1 more than the bytes of stack that instrumented code has used; 0 where
                                the counters are not kept, or the program does not record it */
};

#endif
