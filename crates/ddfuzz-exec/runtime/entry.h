/* The entry function of a target, which takes an input. */
#ifndef DDFUZZ_ENTRY_H
#define DDFUZZ_ENTRY_H

#include <stddef.h>
#include <stdint.h>

/* maximum number of libFuzzer's comparison callbacks */
enum { CALLBACKS = 9 };

struct entry_point {
    int (*function)(const uint8_t *, size_t); /* NULL without an entry function */
    int is_fuzzer; /* libFuzzer's: its result is no exit status */
    int (*initialize)(int *, char ***);       /* called once before the first input, or NULL */
    /* AddressSanitizer's __sanitizer_get_module_and_offset_for_pc, or NULL */
    int (*find_module)(void *, char *, size_t, void **);
    uint8_t *counters;
    size_t counter_count;
    /* Distance of libFuzzer's __sancov_lowest_stack, which is thread-local, below the address of the
     * thread; 0 without one. */
    uintptr_t lowest_stack;
    uintptr_t callbacks[CALLBACKS]; /* libFuzzer's comparison callbacks */
    size_t callback_count;
};

/* Parses the variable DDFUZZ_ENTRY: `t` or `f` (is_fuzzer), then in hexadecimal, each after a
 * comma, the addresses before loading of the function, of the initializer (0: none), of
 * find_module (0: none), of the counters' start and end, the distance of the lowest stack (0: none),
 * and the addresses of libFuzzer's comparison callbacks.
 * NULL gives no function. */
struct entry_point entry_from(const char *words);

/* Makes AddressSanitizer list the modules of this process now, which its reports need. Otherwise
 * each fork that crashes lists them, and fills free lists of 1 MiB each for that. */
void entry_prepare_reports(const struct entry_point *entry);

/* Calls the function; returns an exit status. */
int entry_call(const struct entry_point *entry, const uint8_t *input, size_t length);

/* Reads `length` bytes at offset `at` of a file into a heap block of exactly that size, so that
 * sanitizers notice reads beyond its end. Returns 0 or an errno. */
int entry_input(int fd, size_t at, size_t length, uint8_t **input);

#endif
