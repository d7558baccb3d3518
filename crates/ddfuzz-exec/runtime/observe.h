/* What an observed run tells ddfuzz of its comparisons, through a memory file. The Rust side is
 * crates/ddfuzz-exec/src/observe/history.rs; both change together. */
#ifndef DDFUZZ_OBSERVE_H
#define DDFUZZ_OBSERVE_H

#include <stdint.h>

#define OBSERVED_MAGIC 0x6f626466u
#define OBSERVED_VERSION 1u

enum {
    FD_OBSERVED = 195, /* of a child that is observed: the memory file of struct observed */
    OPERAND = 64,      /* bytes kept of an operand */
    PAIRS = 4096,      /* the last so many comparisons are kept */
    HOOKS = 32
};

/* Which callback of the compiler's instrumentation. */
enum hook_kind {
    HOOK_CMP1,
    HOOK_CMP2,
    HOOK_CMP4,
    HOOK_CMP8,
    HOOK_CONST1,
    HOOK_CONST2,
    HOOK_CONST4,
    HOOK_CONST8,
    HOOK_SWITCH,
    HOOK_MEMCMP, /* from here on: what libFuzzer defines to hear of a sanitizer's comparisons */
    HOOK_STRNCMP,
    HOOK_STRCMP,
    HOOK_STRNCASECMP,
    HOOK_STRCASECMP,
    HOOK_MEMMEM,
    HOOK_STRSTR,
    HOOK_STRCASESTR,
    HOOK_KINDS
};

/* A callback that the program defines itself, out of a preload's reach. */
struct hook {
    uint64_t address; /* before loading */
    uint64_t kind;    /* of enum hook_kind */
};

/* Two operands that were compared, and differed. */
struct pair {
    uint64_t seq;  /* its number, from 1, written last; 0 while it is not whole */
    uint64_t site; /* where the program compared them */
    uint64_t sizes[2];
    uint8_t operands[2][OPERAND];
};

/* In a loop, which is one process for many runs: observes from here on, or no longer. */
__attribute__((visibility("default"))) void ddfuzz_observe(int on);

struct observed {
    uint32_t magic, version;
    uint64_t hook_count;
    uint64_t taken; /* how many comparisons there were */
    struct hook hooks[HOOKS];
    struct pair pairs[PAIRS];
};

#endif
