/* Runs a program on a system that lacks system calls: odd_system NUMBER:ERRNO... -- PROGRAM [ARG]... */
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

int main(int argc, char **argv)
{
    struct sock_filter rules[64];
    unsigned short count = 0;
    int at = 1;
    rules[count++] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS,
                                                  offsetof(struct seccomp_data, nr));
    for (; at < argc && strcmp(argv[at], "--") && count < 60; at++) {
        char *end;
        unsigned number = (unsigned)strtoul(argv[at], &end, 10);
        unsigned error = (unsigned)strtoul(end + 1, NULL, 10);
        rules[count++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, number, 0, 1);
        rules[count++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | error);
    }
    rules[count++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
    struct sock_fprog program = {count, rules};
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0
        || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) < 0 || at + 1 >= argc)
        return 125;
    execv(argv[at + 1], argv + at + 1);
    return 126;
}
