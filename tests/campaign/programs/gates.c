/* Bugs behind single bytes, one behind a word, and places behind sums that only a given input
 * passes. A program that reads its standard input with PROGRAM, else a harness of libFuzzer; with
 * SLOW, each run takes so many microseconds longer. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static volatile int zero, place;
static int *volatile nowhere;

__attribute__((noinline)) static void opened(void) {
    *nowhere = 1;
}

__attribute__((noinline)) static void repeated(void) {
    abort();
}

__attribute__((noinline)) static void divided(void) {
    place = 7 / zero;
}

__attribute__((noinline)) static void spelled(void) {
    __builtin_trap();
}

__attribute__((noinline)) static void unsealed(void) {
    *nowhere = 2;
}

/* Fowler, Noll and Vo's sum, 1a. */
static uint32_t sum(const uint8_t *text, size_t length) {
    uint32_t sum = 0x811c9dc5;
    for (size_t at = 0; at < length; at++)
        sum = (sum ^ text[at]) * 0x01000193;
    return sum;
}

int LLVMFuzzerTestOneInput(const uint8_t *text, size_t length) {
    if (length == 0)
        return 0;
#ifdef SLOW
    usleep(SLOW);
#endif
#ifndef NONE
    if (text[0] == '<')
        opened();
#endif
#ifndef FEW
    if (length > 1 && text[0] == '#' && text[1] >= 0x80)
        repeated();
    if (length > 2 && text[0] == '%')
        divided();
#endif
#ifdef WORD
    if (length >= 8 && memcmp(text, "MAGIC-01", 8) == 0)
        spelled();
#endif
#ifdef SEALED
    if (length == 12) {
        uint32_t seal = sum(text, length);
        if (seal == 0x502b7b26) /* of "sealed-one--" */
            place = 3;
        if (seal == 0x5bc8c7ec) /* of "sealed-two--" */
            unsealed();
    }
#endif
    for (size_t at = 1; at < length && at < 9; at++) {
        if (text[at] != "abcdefgh"[at - 1])
            break;
        place = at == 1 ? 1 : at == 2 ? 2 : at == 3 ? 3 : 4;
    }
    (void)sum, (void)opened, (void)spelled, (void)unsealed, (void)repeated, (void)divided;
    return 0;
}

#ifdef PROGRAM
int main(void) {
    static uint8_t text[1 << 16];
    size_t length = 0;
    for (ssize_t more; (more = read(0, text + length, sizeof text - length)) > 0;)
        length += (size_t)more;
    return LLVMFuzzerTestOneInput(text, length);
}
#endif
