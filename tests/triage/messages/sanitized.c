/* Bugs that sanitizers report, chosen by the input's first letter; the second letter chooses one of
 * two callers. With -DFUZZER it is an entry of libFuzzer, else a program that reads its stdin. */
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static volatile int zero, sink;
static int table[4];
static char *volatile lost, *volatile kept;

__attribute__((noinline)) static int get(char *p, int i) { return p[i]; }
__attribute__((noinline)) static void put(char *p, int i) { p[i] = 1; }
__attribute__((noinline)) static int sum(int a, int b) { return a + b; }
__attribute__((noinline)) static int both(int a, int b, int which)
{
    return which ? a + b : a * b;
}
__attribute__((noinline)) static int recurse(int n)
{
    volatile char room[512];
    room[0] = (char)n;
    return recurse(n + 1) + room[0];
}
__attribute__((noinline)) static void lose(void)
{
    lost = malloc(77);
    lost = 0;
}

static void print_report(void)
{
    static const char text[] =
        "==1==ERROR: AddressSanitizer: heap-use-after-free on address 0x1\n    #0 0x1 in main\n";
    sink = (int)write(2, text, sizeof text - 1);
}

static void leaves(int signal) { _exit(signal); }

__attribute__((noinline)) static int run(const char *in)
{
    char *heap = malloc(10), stack[16] = {0};
    int i = 16 + zero;
    kept = heap;
    switch (in[0]) {
    case 'h': return in[1] == '2' ? get(heap, i) : get(heap, i + 0 * zero);
    case 'w': put(heap, 12 + zero); sink = heap[0]; break;
    case 'm': memcpy(heap, in, 30 + zero); sink = heap[0]; break;
    case 'u': free(heap); return get(heap, 1);
    case 'd': free(heap); free(heap); break;
    case 'f': free(stack + 8 + zero); break;
    case 's': return get(stack, i);
    case 'g': return table[4 + zero];
    case 'n': return *(volatile int *)(uintptr_t)zero;
    case 'j': ((void (*)(void))(uintptr_t)(0x41414141 + zero))(); break;
    case 'r': return recurse(1);
    case 'a': return sum(2147483647, 1 + zero);
    case 'b': return both(2147483647, 2 + zero, in[1] == '2');
    case 'l': lose(); break;
    case 'i': { int *fresh = malloc(4); if (*fresh) zero = 0; break; }
    case 'q': abort();
    case 'e': signal(SIGABRT, leaves); put(heap, 12 + zero); break;
    case 'p': print_report(); abort();
    case 'k': signal(SIGABRT, leaves); abort();
    }
    free(heap);
    return 0;
}

#ifdef FUZZER
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char in[64] = {0};
    memcpy(in, data, size < 63 ? size : 63);
    sink = run(in);
    return 0;
}
#else
int main(void)
{
    char in[64] = {0};
    if (read(0, in, 63) < 0)
        return 1;
    sink = run(in);
    return 0;
}
#endif
