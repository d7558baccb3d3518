/* The same as afl_plain.c for many inputs in one process, which come in shared memory:
 * `afl-clang-fast -O2 afl_persistent.c`. */
#include <unistd.h>

__AFL_FUZZ_INIT();

static volatile int last;

int main(void)
{
    unsigned char *bytes = __AFL_FUZZ_TESTCASE_BUF;
    while (__AFL_LOOP(10000)) {
        long length = __AFL_FUZZ_TESTCASE_LEN;
        int depth = 0;
        for (long i = 0; i < length && i < 4096; i++) {
            if (bytes[i] == '(')
                depth++;
            else if (bytes[i] == ')' && depth > 0)
                depth--;
            else if (bytes[i] > 0x7f)
                depth ^= 1;
        }
        last = depth;
    }
    return 0;
}
