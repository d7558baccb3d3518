/* The function of a target that takes an input. */
#ifndef DDFUZZ_ENTRY_H
#define DDFUZZ_ENTRY_H

#include <stddef.h>
#include <stdint.h>

/* libFuzzer has so many before comparisons, at most. */
enum { CALLBACKS = 9 };

struct entry_point {
    int (*function)(const uint8_t *, size_t); /* NULL: there is none */
    int is_fuzzer;                            /* libFuzzer's: what it returns is no exit status */
    int (*initialize)(int *, char ***);       /* to be called once before it, or NULL */
    uint8_t *counters;
    size_t counter_count;
    uintptr_t callbacks[CALLBACKS]; /* of libFuzzer, before comparisons */
    size_t callback_count;
};

/* From the words of DDFUZZ_ENTRY: `t` or `f` (is_fuzzer), and then in hexadecimal, each behind a
 * comma, the addresses before loading of the function, of the initializer (0: none), and of the
 * counters' start and end; behind them, those of libFuzzer's callbacks before comparisons. NULL
 * gives no function. */
struct entry_point entry_from(const char *words);

/* Calls the function; gives an exit status. */
int entry_call(const struct entry_point *entry, const uint8_t *input, size_t length);

/* Gives `length` bytes from `at` on of a file as a heap block of exactly that size, so that
 * reading beyond its end is as visible as it can be. Where it cannot be had: the errno. */
int entry_input(int fd, size_t at, size_t length, uint8_t **input);

#endif
