/* Refuses its input by one kind of comparison, named by its argument: 1 refused, 0 accepted. */
#define _GNU_SOURCE
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#ifdef STUBS
/* What a harness without a fuzzer behind it defines: callbacks that do nothing. */
void __sanitizer_cov_trace_cmp1(uint8_t a, uint8_t b) { (void)a, (void)b; }
void __sanitizer_cov_trace_cmp2(uint16_t a, uint16_t b) { (void)a, (void)b; }
void __sanitizer_cov_trace_cmp4(uint32_t a, uint32_t b) { (void)a, (void)b; }
void __sanitizer_cov_trace_cmp8(uint64_t a, uint64_t b) { (void)a, (void)b; }
void __sanitizer_cov_trace_const_cmp1(uint8_t a, uint8_t b) { (void)a, (void)b; }
void __sanitizer_cov_trace_const_cmp2(uint16_t a, uint16_t b) { (void)a, (void)b; }
void __sanitizer_cov_trace_const_cmp4(uint32_t a, uint32_t b) { (void)a, (void)b; }
void __sanitizer_cov_trace_const_cmp8(uint64_t a, uint64_t b) { (void)a, (void)b; }
void __sanitizer_cov_trace_switch(uint64_t value, void *cases) { (void)value, (void)cases; }
#endif

static unsigned char input[1 << 16];
static size_t size;

static uint64_t little(const unsigned char *at, int bytes)
{
    uint64_t number = 0;
    for (int i = bytes; i-- > 0;)
        number = number << 8 | at[i];
    return number;
}

static uint64_t big(const unsigned char *at, int bytes)
{
    uint64_t number = 0;
    for (int i = 0; i < bytes; i++)
        number = number << 8 | at[i];
    return number;
}

static uint32_t crc32(const unsigned char *at, size_t length)
{
    uint32_t crc = ~0u;
    for (size_t i = 0; i < length; i++) {
        crc ^= at[i];
        for (int bit = 0; bit < 8; bit++)
            crc = crc & 1 ? crc >> 1 ^ 0xedb88320u : crc >> 1;
    }
    return ~crc;
}

static uint32_t sum(const unsigned char *at, size_t length)
{
    uint32_t all = 0;
    for (size_t i = 0; i < length; i++)
        all += at[i] * 0x01000193u;
    return all;
}

/* A length of two bytes, a sum of four, and what they are of. */
static int is_packet(void)
{
    if (size < 6 || (uint16_t)little(input, 2) != (uint16_t)(size - 6))
        return 0;
    return (uint32_t)little(input + 2, 4) == sum(input + 6, size - 6);
}

__attribute__((noinline)) static int by_case(uint32_t value)
{
    static volatile int all = 1; /* so that no table of results takes the place of the cases */
    switch (value) {
    case 70000: return all += 11;
    case 70001: return all -= 42;
    case 70002: return all *= 7;
    case 70003: return all ^= 3;
    case 70004: return all |= 77;
    case 70005: return all << 4;
    default: return 0;
    }
}

/* Children compare, too, and are not to be observed; what they do must not end otherwise. */
static int after_children(void)
{
    for (int i = 0; i < 8; i++) {
        pid_t child = fork();
        if (child == 0)
            _exit(memcmp(input, "child of the test", 8) == 0 || little(input, 4) == 99999);
        int status;
        if (waitpid(child, &status, 0) != child || !WIFEXITED(status) || WEXITSTATUS(status) != 0)
            return 0;
    }
    if (system("exit 3") != 3 << 8)
        return 0;
    return (uint32_t)little(input, 4) == 0xcafe0001u;
}

static void *count_same(void *count)
{
    for (int i = 0; i < 3000; i++)
        if (input[i % 4] == (unsigned char)(i & 3))
            ++*(int *)count;
    return count;
}

static int after_threads(void)
{
    pthread_t threads[4];
    int counts[4] = {0};
    for (int i = 0; i < 4; i++)
        if (pthread_create(&threads[i], NULL, count_same, &counts[i]) != 0)
            return 0;
    for (int i = 0; i < 4; i++)
        pthread_join(threads[i], NULL);
    for (int i = 1; i < 4; i++)
        if (counts[i] != counts[0])
            return 0;
    return (uint32_t)little(input, 4) == 0xcafe0002u;
}

static volatile sig_atomic_t traps;

static void on_trap(int number)
{
    (void)number;
    traps++;
}

/* Signals of its own reach it. */
static int after_traps(void)
{
    signal(SIGTRAP, on_trap);
    raise(SIGTRAP);
#ifdef __x86_64__
    __asm__ volatile("int3");
#else
    raise(SIGTRAP);
#endif
    return traps == 2 && (uint32_t)little(input, 4) == 0xcafe0003u;
}

/* Two operands that differ at once, at the end of what can be read. */
static int at_the_edge(void)
{
    unsigned char *page = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (page == MAP_FAILED || mprotect(page + 4096, 4096, PROT_NONE) < 0)
        return 0;
    unsigned char *end = page + 4096 - 3;
    memcpy(end, input, 3);
    volatile size_t more = 60;
    return memcmp(end, "XYZ-and-more-than-there-is-to-compare-of-which-it-needs-none", more) == 0;
}

/* Compares with memory that is not there. */
__attribute__((noinline)) static int with_nothing(volatile int *nothing)
{
    return *nothing == 0x12345678;
}

static int spin(void)
{
    volatile uint64_t count = 0;
    while (count != UINT64_MAX)
        count++;
    return 1;
}

static int accepts(const char *how)
{
    char *text = (char *)input;
    if (strcmp(how, "memcmp") == 0)
        return memcmp(input, "MAGIC-bytes!", 12) == 0;
    if (strcmp(how, "strcmp") == 0)
        return strcmp(text, "the expected word") == 0;
    if (strcmp(how, "strncmp") == 0)
        return strncmp(text, "prefix:", 7) == 0;
    if (strcmp(how, "strcasecmp") == 0)
        return strcasecmp(text, "Content-Length") == 0;
    if (strcmp(how, "strncasecmp") == 0)
        return strncasecmp(text, "Content-Type", 12) == 0;
    if (strcmp(how, "memmem") == 0)
        return memmem(input, size, "needle", 6) != NULL;
    if (strcmp(how, "strstr") == 0)
        return strstr(text, "<body>") != NULL;
    if (strcmp(how, "u16le") == 0)
        return (uint16_t)little(input, 2) == (uint16_t)(size - 2);
    if (strcmp(how, "u16be") == 0)
        return (uint16_t)big(input, 2) == (uint16_t)(size - 2);
    if (strcmp(how, "u32le") == 0)
        return (uint32_t)little(input, 4) == (uint32_t)(size - 4);
    if (strcmp(how, "u32be") == 0)
        return (uint32_t)big(input, 4) == (uint32_t)(size - 4);
    if (strcmp(how, "u64le") == 0)
        return little(input, 8) == 0x1122334455667788u + size;
    if (strcmp(how, "crc32") == 0)
        return (uint32_t)little(input, 4) == crc32(input + 4, size - 4);
    if (strcmp(how, "packet") == 0)
        return is_packet();
    if (strcmp(how, "switch") == 0)
        return by_case((uint32_t)little(input, 4)) != 0;
    if (strcmp(how, "children") == 0)
        return after_children();
    if (strcmp(how, "threads") == 0)
        return after_threads();
    if (strcmp(how, "traps") == 0)
        return after_traps();
    if (strcmp(how, "edge") == 0)
        return at_the_edge();
    if (strcmp(how, "nothing") == 0)
        return with_nothing((volatile int *)(little(input, 4) != 0xcafe0004u ? NULL : input));
    if (strcmp(how, "null") == 0)
        return strcmp(size > 100 ? text : NULL, "text") == 0;
    if (strcmp(how, "spin") == 0)
        return spin();
    return 0;
}

int main(int argc, char **argv)
{
    size = fread(input, 1, sizeof input - 1, stdin);
    return argc > 1 && accepts(argv[1]) ? 0 : 1;
}
