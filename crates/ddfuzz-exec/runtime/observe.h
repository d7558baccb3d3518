/* The memory file in which an observed run reports its comparisons. The Rust side is
 * crates/ddfuzz-exec/src/observe/history.rs; both change together. */
#ifndef DDFUZZ_OBSERVE_H
#define DDFUZZ_OBSERVE_H

#include <stdint.h>

#define OBSERVED_MAGIC 0x6f626466u
#define OBSERVED_VERSION 1u

enum {
    FD_OBSERVED = 195, /* the memory file of struct observed, inherited by an observed child */
    OPERAND = 64,      /* maximum length of a recorded operand, in bytes */
    PAIRS = 4096,      /* size of the ring: the number of last comparisons that are kept */
    HOOKS = 32
};

/* Kinds of comparison callbacks. */
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
    HOOK_MEMCMP, /* from here on: hooks by which sanitizers report comparisons to libFuzzer */
    HOOK_STRNCMP,
    HOOK_STRCMP,
    HOOK_STRNCASECMP,
    HOOK_STRCASECMP,
    HOOK_MEMMEM,
    HOOK_STRSTR,
    HOOK_STRCASESTR,
    HOOK_KINDS
};

/* A callback that the program itself defines, so that a preloaded function cannot replace it. */
struct hook {
    uint64_t address; /* address before loading */
    uint64_t kind;    /* one of enum hook_kind */
};

/* Two operands that were compared and differed. */
struct pair {
    uint64_t seq;  /* its number from 1, written last; 0 while the pair is incomplete */
    uint64_t site; /* address of the comparison in the program */
    uint64_t sizes[2];
    uint8_t operands[2][OPERAND];
};

/* In a loop, one process of which serves many runs: starts or stops observing. */
__attribute__((visibility("default"))) void ddfuzz_observe(int on);

struct observed {
    uint32_t magic, version;
    uint64_t hook_count;
    uint64_t taken; /* number of comparisons so far */
    struct hook hooks[HOOKS];
    struct pair pairs[PAIRS];
};

#endif
