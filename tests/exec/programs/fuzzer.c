/* A harness of libFuzzer. What it does is chosen by the first byte of its input. */
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int initialized, calls;

int LLVMFuzzerInitialize(int *argc, char ***argv) {
    (void)argc, (void)argv;
    initialized++;
    return 0;
}

/* A ladder of branches, so that inputs differ in what they reach. */
__attribute__((noinline)) static int climb(const uint8_t *data, size_t size) {
    int height = 0;
    for (size_t i = 0; i < size; i++) {
        if (data[i] == 'u')
            height++;
        else if (data[i] == 'd')
            height--;
        if (height == 3)
            height += 2;
    }
    return height;
}

__attribute__((noinline)) static void compare(const uint8_t *data, size_t size) {
    uint32_t number;
    if (size >= 4) {
        memcpy(&number, data, 4);
        if (number == 0x1badcafe)
            puts("number");
    }
    if (size >= 8 && memcmp(data, "keyword!", 8) == 0)
        puts("keyword");
}

static volatile int sink;

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    calls++;
    if (initialized != 1)
        abort();
    if (size == 0)
        return 0;
    switch (data[0]) {
    case 'A': abort();
    case 'S': *(volatile int *)8 = 1; return 0;
    case 'F': raise(SIGFPE); return 0;
    case 'H': { /* beyond the input's end, which only a sanitizer sees for sure */
        volatile const uint8_t *end = data + size;
        sink = *end;
        return 0;
    }
    case 'R': return -1; /* not for the corpus */
    case 'L': for (;;) sink++;
    case 'K': kill(getpid(), SIGKILL); return 0;
    case 'X': exit(3);
    case 'O': /* fails if a run before has left its file */
        if (access("left", F_OK) == 0)
            abort();
        fclose(fopen("left", "w"));
        return 0;
    case 'T': if (calls == 3) abort(); return 0; /* the third call of a process */
    case 'W': sink = climb(data + 1, size - 1); return 0;
    case 'C': compare(data + 1, size - 1); return 0;
    default: return 0;
    }
}
