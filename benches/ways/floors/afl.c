/* The floor of AFL++'s fork servers: one word to the server and two words back for each run, and
 * nothing else. `afl RUNS PROGRAM [shared]` runs PROGRAM, which has such a server, on the bytes of
 * its own stdin, and prints how many seconds the runs took. `shared`: in AFL++'s persistent mode,
 * with the input in shared memory. */
#include "input.h"

#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/shm.h>

/* AFL++'s descriptors and sizes, and what its server says that takes inputs in shared memory. */
enum { CONTROL = 198, STATUS = 199, MAP = 1 << 16, INPUT = 1 << 20 };
static const unsigned SHARES = 0x81000001;

/* New shared memory, whose number the variable `name` tells. */
static char *share(const char *name, size_t size, int *id)
{
    char number[16];
    *id = shmget(IPC_PRIVATE, size, IPC_CREAT | 0600);
    char *at = shmat(*id, NULL, 0);
    if (at == (void *)-1)
        fail("shared memory");
    snprintf(number, sizeof number, "%d", *id);
    setenv(name, number, 1);
    return at;
}

static void serve(char *program, int control, int status, int input)
{
    int null = open("/dev/null", O_RDWR);
    if (dup2(input, 0) < 0 || dup2(null, 1) < 0 || dup2(null, 2) < 0)
        fail("outputs");
    if (dup2(control, CONTROL) < 0 || dup2(status, STATUS) < 0)
        fail("pipes");
    char *args[] = {program, NULL};
    execv(program, args);
    fail(program);
}

static void get(int status, void *word)
{
    if (read(status, word, 4) != 4)
        fail("the fork server");
}

int main(int count, char **args)
{
    if (count < 3)
        return 2;
    int shared = count > 3, ids[2], control[2], status[2];
    share("__AFL_SHM_ID", MAP, &ids[0]);
    char *place = share(shared ? "__AFL_SHM_FUZZ_ID" : "UNUSED", INPUT, &ids[1]);
    if (shared)
        setenv("__AFL_PERSISTENT", "1", 1);
    setenv("LD_BIND_NOW", "1", 1);
    int input = memory_file();
    ssize_t length = pread(input, place + 4, INPUT - 4, 0);
    if (length < 0)
        fail("the input");
    memcpy(place, &(unsigned){(unsigned)length}, 4);
    if (pipe2(control, O_CLOEXEC) || pipe2(status, O_CLOEXEC))
        fail("pipes");
    /* The last process of the server becomes a child, so that its CPU time counts. */
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    if (fork() == 0)
        serve(args[2], control[0], status[1], input);
    close(control[0]);
    close(status[1]);
    unsigned hello, zero = 0;
    get(status[0], &hello);
    if ((hello & SHARES) == SHARES && write(control[1], &SHARES, 4) != 4)
        fail("the fork server");
    int child = 0, ended;
    double began = seconds();
    for (long run = atol(args[1]); run > 0; run--) {
        if (!shared)
            lseek(input, 0, SEEK_SET);
        if (write(control[1], &zero, 4) != 4)
            fail("the fork server");
        get(status[0], &child);
        get(status[0], &ended);
    }
    double took = seconds() - began;
    close(control[1]);
    if (shared && child > 0)
        kill(child, SIGKILL);
    while (wait(NULL) > 0)
        ;
    for (int each = 0; each < 2; each++)
        shmctl(ids[each], IPC_RMID, NULL);
    printf("%.9f\n", took);
    return 0;
}
