/* Branches on its input, for tests of coverage, endings and modes: compiled by AFL++, plain
 * (stdin, or a file named in its arguments), DEFERRED, or PERSISTENT with inputs in memory. */
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int runs;

static int work(const unsigned char *bytes, long length)
{
    int sum = 0;
    runs++;
    if (length < 1)
        return 3;
    switch (bytes[0]) {
    case 'a': abort();
    case 'c': *(volatile int *)0 = 1; break;
    case 'k': kill(getpid(), SIGKILL); break;
    case 'l':
        for (;;)
            sum++;
    case 'n': return runs; /* how many inputs this process has seen */
    case 'o':
        if (fork() == 0)
            for (;;)
                pause();
        break;
    case 's':
        for (;;)
            pause();
    case 'v': /* kills its server, which no answer can come from any more */
        kill(getppid(), SIGKILL);
        for (;;)
            pause();
    case 'x': exit(7);
    case 'z': return bytes[length - 1]; /* what a cut input would not have */
    }
    for (long i = 0; i < length; i++)
        if (bytes[i] == 'y')
            sum++;
        else if (bytes[i] > 0x7f)
            sum += 2;
    return sum & 0x7f;
}

#ifdef PERSISTENT
__AFL_FUZZ_INIT();
#endif

int main(int argc, char **argv)
{
    int ended = 0;
#if defined DEFERRED || defined PERSISTENT
    __AFL_INIT();
#endif
#ifdef PERSISTENT
    (void)argc, (void)argv;
    const unsigned char *input = __AFL_FUZZ_TESTCASE_BUF;
    while (__AFL_LOOP(1000))
        ended = work(input, __AFL_FUZZ_TESTCASE_LEN);
#else
    static unsigned char block[2 << 20];
    int from = argc > 1 ? open(argv[1], O_RDONLY) : 0;
    long length = 0, got;
    while ((got = read(from, block + length, sizeof block - length)) > 0)
        length += got;
    ended = work(block, length);
#endif
    return ended;
}
