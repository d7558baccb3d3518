/* A fork server that speaks as its arguments say, without AFL++'s compilers: the greeting of AFL++
 * 4.10 and later, the bare one of the first AFL, and what no server should say. */
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/shm.h>
#include <sys/wait.h>
#include <unistd.h>

enum { CONTROL = 198, STATUS = 199 };
enum { MAP_SIZE = 1, SHARED_INPUT = 2, DICTIONARY = 0x800 };

static unsigned char *map, *shared;

static void say(uint32_t word)
{
    if (write(STATUS, &word, 4) != 4)
        _exit(1);
}

static uint32_t hear(void)
{
    uint32_t word;
    if (read(CONTROL, &word, 4) != 4)
        _exit(1);
    return word;
}

static void *attach(const char *name)
{
    const char *number = getenv(name);
    return number ? shmat(atoi(number), NULL, 0) : NULL;
}

static void greet(uint32_t options, uint32_t size)
{
    const uint32_t version = 0x41464c01;
    say(version);
    if (hear() != ~version)
        _exit(1);
    say(options);
    if (options & MAP_SIZE)
        say(size);
    if (options & DICTIONARY) {
        char words[10000];
        memset(words, 3, sizeof words);
        say(sizeof words);
        for (size_t at = 0; at < sizeof words; at += 1000)
            if (write(STATUS, words + at, 1000) != 1000)
                _exit(1);
    }
    say(version);
}

static int work(void)
{
    unsigned char bytes[64];
    long length;
    if (shared) {
        length = *(uint32_t *)shared;
        memcpy(bytes, shared + 4, sizeof bytes);
    } else {
        length = read(0, bytes, sizeof bytes);
    }
    map[length % 100]++;
    if (length > 0 && bytes[0] == 'c')
        abort();
    return (int)length & 0x7f;
}

static void serve(void)
{
    for (;;) {
        int status;
        hear();
        pid_t child = fork();
        if (child == 0) {
            close(CONTROL);
            close(STATUS);
            _exit(work());
        }
        say((uint32_t)child);
        if (waitpid(child, &status, 0) < 0)
            _exit(1);
        say((uint32_t)status);
    }
}

int main(int argc, char **argv)
{
    const char *how = argc > 1 ? argv[1] : "";
    map = attach("__AFL_SHM_ID");
    if (!map || map == (void *)-1)
        return 9;
    if (!strcmp(how, "new")) {
        greet(MAP_SIZE, 100);
    } else if (!strcmp(how, "new, all")) {
        shared = attach("__AFL_SHM_FUZZ_ID");
        greet(MAP_SIZE | SHARED_INPUT | DICTIONARY, 100);
    } else if (!strcmp(how, "large")) { /* more than old greetings can tell */
        greet(MAP_SIZE, 20000000);
        map[20000000 - 1] = 1;
    } else if (!strcmp(how, "bare")) {
        say(0);
    } else if (!strcmp(how, "too large")) {
        say(0xeffe0000u | 1);
        pause();
    } else if (!strcmp(how, "error")) {
        say(0xeffe0000u | 8);
        pause();
    } else if (!strcmp(how, "old error")) {
        say(0xf800008fu | 2 << 8);
        pause();
    } else if (!strcmp(how, "late error")) {
        say(0x41464c01);
        hear();
        say(0xeffe0000u | 16);
        pause();
    } else if (!strcmp(how, "newer")) {
        say(0x41464c07);
        pause();
    } else if (!strcmp(how, "options")) {
        greet(0x40, 0);
    } else if (!strcmp(how, "chatter")) {
        say(0x6f6c6c65);
        pause();
    } else if (!strcmp(how, "half")) {
        if (write(STATUS, "ab", 2) != 2)
            return 1;
        return 0;
    } else if (!strcmp(how, "no pid")) {
        say(0);
        for (;;) {
            hear();
            say(0xffffffff);
        }
    } else if (!strcmp(how, "mortal")) { /* dies of each request */
        say(0);
        hear();
        return 0;
    } else {
        return 8;
    }
    serve();
}
