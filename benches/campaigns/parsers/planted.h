/* What all parsers of this folder share: which bugs are in, and how a bug says that it happens. */
#ifndef PLANTED_H
#define PLANTED_H
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* The bugs by number. -DPLANTED_ONLY=n leaves one bug in and mends the others, so that a campaign
 * that ends with its first crash has found that bug; 0, or nothing, leaves all in; -1 none. */
enum {
    ARCHIVE_MAGIC = 1,
    ARCHIVE_NAME,
    CHUNK_PALETTE,
    CHUNK_ORDER,
    SENTENCE_FIELDS,
    VAULT_DOOR,
    TREE_PRODUCT,
    TREE_DEPTH,
    LEDGER_TOTAL,
    LEDGER_FREE,
    SCRIPT_LOOP,
    PACKET_REPLY,
    PICTURE_ALPHA,
    PICTURE_TIMES,
    LAYOUT_DEPTH,
    LAYOUT_ROWS
};
#ifndef PLANTED_ONLY
#define PLANTED_ONLY 0
#endif
#define WITH(bug) (PLANTED_ONLY == 0 || PLANTED_ONLY == (bug))

/* A run begins: it is counted in the file RUNS, if there is one. */
void planted_run(void);

/* The bug happens now: says so in the file CANARY, and in RUNS in which run it first did. */
void planted_hit(const char *bug);

/* Takes what a parser has found out, so that compilers do not leave out what leads to it. */
void planted_result(uint64_t value);

/* The crash itself: a write to where nothing is. */
void planted_crash(void) __attribute__((noreturn));

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
#endif
