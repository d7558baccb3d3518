/* Runs a program on a system that lacks system calls: odd_system CALL... -- PROGRAM [ARG]...
 * CALL is NUMBER:ERRNO, or NUMBER/ARGUMENT=VALUE:ERRNO for calls of which the argument (from 0) has
 * this value. */
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

enum { MOST_RULES = 128, RULES_OF_A_CALL = 5, NUMBER = offsetof(struct seccomp_data, nr) };

/* Adds the rules of one call; returns how many. */
static int add(struct sock_filter *rules, const char *call)
{
    char *end;
    int count = 0, has_argument;
    unsigned number = (unsigned)strtoul(call, &end, 10), argument = 0, value = 0;
    if ((has_argument = *end == '/')) {
        argument = (unsigned)strtoul(end + 1, &end, 10);
        value = (unsigned)strtoul(end + 1, &end, 10);
    }
    unsigned error = (unsigned)strtoul(end + 1, NULL, 10);
    unsigned char rest = has_argument ? RULES_OF_A_CALL - 1 : 1;
    rules[count++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, number, 0, rest);
    if (has_argument) {
        unsigned at = offsetof(struct seccomp_data, args) + 8 * argument;
        rules[count++] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, at);
        rules[count++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, value, 0, 1);
    }
    rules[count++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | error);
    if (has_argument)
        rules[count++] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, NUMBER);
    return count;
}

int main(int argc, char **argv)
{
    struct sock_filter rules[MOST_RULES];
    unsigned short count = 0;
    int at = 1;
    rules[count++] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, NUMBER);
    for (; at < argc && strcmp(argv[at], "--") && count + RULES_OF_A_CALL < MOST_RULES; at++)
        count += (unsigned short)add(rules + count, argv[at]);
    rules[count++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
    struct sock_fprog program = {count, rules};
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0
        || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) < 0 || at + 1 >= argc)
        return 125;
    execv(argv[at + 1], argv + at + 1);
    return 126;
}
