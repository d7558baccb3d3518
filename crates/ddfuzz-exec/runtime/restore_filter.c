/* The filter of system calls that the runner installs: it lets pass what the table of
 * restore_calls.c lets pass, and the calls of this library, whose instruction is in defer_call. Any
 * other call is stopped by a SIGSYS. */
#define _GNU_SOURCE
#include "restore.h"

#if defined(__x86_64__) && defined(__linux__)
#include "restore_state.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/futex.h>
#include <linux/seccomp.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

enum { MOST_INSTRUCTIONS = 2048 };

struct program {
    struct sock_filter code[MOST_INSTRUCTIONS];
    unsigned short length;
};

static void emit(struct program *to, unsigned code, unsigned k, unsigned yes, unsigned no)
{
    if (to->length == MOST_INSTRUCTIONS)
        return; /* the kernel then refuses the filter: it does not end by a return */
    to->code[to->length++] =
        (struct sock_filter){(unsigned short)code, (unsigned char)yes, (unsigned char)no, k};
}

/* Loads the low half of an argument, or its high half. */
static void load_argument(struct program *to, int number, int high)
{
    size_t at = offsetof(struct seccomp_data, args) + 8 * (size_t)number + 4 * (size_t)high;
    emit(to, BPF_LD | BPF_W | BPF_ABS, (unsigned)at, 0, 0);
}

/* Passes if the loaded word is `value`, else goes on. */
static void pass_if(struct program *to, unsigned value)
{
    emit(to, BPF_JMP | BPF_JEQ | BPF_K, value, 0, 1);
    emit(to, BPF_RET | BPF_K, SECCOMP_RET_ALLOW, 0, 0);
}

static void stop(struct program *to)
{
    emit(to, BPF_RET | BPF_K, SECCOMP_RET_TRAP, 0, 0);
}

/* Stops unless the loaded word is `value`. */
static void stop_unless(struct program *to, unsigned value)
{
    emit(to, BPF_JMP | BPF_JEQ | BPF_K, value, 1, 0);
    stop(to);
}

static void stop_unless_fd(struct program *to)
{
    load_argument(to, 0, 0);
    emit(to, BPF_JMP | BPF_JGE | BPF_K, FDS, 0, 1);
    stop(to);
}

static void emit_values(struct program *to, int argument, const unsigned *values, int count)
{
    load_argument(to, argument, 0);
    for (int i = 0; i < count; i++)
        pass_if(to, values[i]);
    stop(to);
}

/* What decides about a call that has a condition; each path ends. */
static void emit_condition(struct program *to, enum condition condition)
{
    static const unsigned outputs[] = {STDOUT_FILENO, STDERR_FILENO};
    static const unsigned clocks[] = {CLOCK_REALTIME,         CLOCK_MONOTONIC, CLOCK_MONOTONIC_RAW,
                                      CLOCK_MONOTONIC_COARSE, CLOCK_BOOTTIME,  CLOCK_TAI,
                                      CLOCK_REALTIME_COARSE};
    static const unsigned fcntls[] = {F_GETFD, F_GETFL};
    static const unsigned ioctls[] = {TCGETS, TIOCGWINSZ, FIONREAD};
    static const unsigned wakes[] = {FUTEX_WAKE, FUTEX_WAKE | FUTEX_PRIVATE_FLAG};
    switch (condition) {
    case NEVER: stop(to); break;
    case ALWAYS: break;
    case OWN_FD: stop_unless_fd(to); break;
    case OUTPUT: emit_values(to, 0, outputs, 2); break;
    case WALL_CLOCK: emit_values(to, 0, clocks, sizeof clocks / sizeof *clocks); break;
    case WAKES: emit_values(to, 1, wakes, 2); break;
    case FACTS_OF_FD:
        stop_unless_fd(to);
        load_argument(to, 3, 0);
        stop_unless(to, AT_EMPTY_PATH);
        break;
    case ASKS_FD:
        stop_unless_fd(to);
        emit_values(to, 1, fcntls, 2);
        break;
    case ASKS_OUTPUT:
        stop_unless_fd(to);
        emit_values(to, 1, ioctls, 3);
        break;
    case ASKS_LIMIT:
        for (int argument = 0; argument <= 2; argument += 2)
            for (int high = 0; high < 2; high++) {
                load_argument(to, argument, high);
                stop_unless(to, 0);
            }
        break;
    }
    emit(to, BPF_RET | BPF_K, SECCOMP_RET_ALLOW, 0, 0);
}

/* Calls of this library pass: those whose instruction is in defer_call. */
static void emit_own_calls(struct program *to)
{
    const size_t at = offsetof(struct seccomp_data, instruction_pointer);
    uintptr_t begin = (uintptr_t)defer_text, end = (uintptr_t)defer_text_end;
    emit(to, BPF_LD | BPF_W | BPF_ABS, (unsigned)at + 4, 0, 0);
    emit(to, BPF_JMP | BPF_JEQ | BPF_K, (unsigned)(begin >> 32), 0, 4);
    emit(to, BPF_LD | BPF_W | BPF_ABS, (unsigned)at, 0, 0);
    emit(to, BPF_JMP | BPF_JGE | BPF_K, (unsigned)begin, 0, 2);
    emit(to, BPF_JMP | BPF_JGT | BPF_K, (unsigned)end, 1, 0);
    emit(to, BPF_RET | BPF_K, SECCOMP_RET_ALLOW, 0, 0);
}

/* A line of the table: its condition is skipped by all other calls. */
static void emit_call(struct program *to, long number, enum condition condition)
{
    unsigned short at = to->length;
    emit(to, BPF_JMP | BPF_JEQ | BPF_K, (unsigned)number, 0, 0);
    emit_condition(to, condition);
    to->code[at].jf = (unsigned char)(to->length - at - 1);
}

int filter_install(void)
{
    static struct program program;
    uintptr_t begin = (uintptr_t)defer_text, end = (uintptr_t)defer_text_end;
    if (begin >> 32 != end >> 32)
        return ERANGE;
    program.length = 0;
    emit(&program, BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, arch), 0, 0);
    stop_unless(&program, AUDIT_ARCH_X86_64);
    emit_own_calls(&program);
    emit(&program, BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr), 0, 0);
    long number;
    enum condition passes;
    for (size_t line = 0; calls_line(line, &number, &passes); line++)
        if (passes != NEVER)
            emit_call(&program, number, passes);
    stop(&program);
    struct sock_fprog filter = {program.length, program.code};
    long refused = call3(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_SPEC_ALLOW,
                         (long)&filter);
    if (refused < 0)
        refused = call3(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, (long)&filter);
    if (refused < 0)
        refused = call3(SYS_prctl, PR_SET_SECCOMP, SECCOMP_MODE_FILTER, (long)&filter);
    return (int)-refused;
}

#endif
