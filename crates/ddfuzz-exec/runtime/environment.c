#define _GNU_SOURCE
#include "environment.h"

#include <fcntl.h>
#include <linux/prctl.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

extern char **environ;

static const char first_own[] = FIRST_OWN_VARIABLE "=";

/* Does not call strncmp, which an observed run would record. */
static int is_first_own(const char *variable)
{
    for (const char *at = first_own; *at; at++)
        if (*variable++ != *at)
            return 0;
    return 1;
}

/* Numbers of fields of /proc/PID/stat, see proc(5). */
enum {
    STATE = 3,
    START_CODE = 26,
    END_CODE,
    START_STACK,
    START_DATA = 45,
    END_DATA,
    START_BRK,
    ARG_START,
    ARG_END,
    ENV_START,
    ENV_END
};

/* Reads /proc/self/stat from its fourth field on; returns 0 if it cannot be read. */
static int read_fields(unsigned long long fields[ENV_END + 1])
{
    char stat[1024];
    int fd = open("/proc/self/stat", O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return 0;
    ssize_t got = read(fd, stat, sizeof stat - 1);
    close(fd);
    if (got <= 0)
        return 0;
    stat[got] = 0;
    char *at = strrchr(stat, ')'); /* "PID (NAME) STATE PARENT ..." */
    if (!at || strlen(at) < 4)
        return 0;
    at += 3;
    for (int field = STATE + 1; field <= ENV_END; field++)
        fields[field] = strtoull(at, &at, 10);
    return 1;
}

/* Makes /proc/self/environ end at `end`, where the system allows it: for one number with a right
 * that few have (CAP_SYS_RESOURCE), for all of them together without. */
static void end_at(const char *end)
{
    if (prctl(PR_SET_MM, PR_SET_MM_ENV_END, end, 0, 0) == 0)
        return;
    unsigned long long fields[ENV_END + 1];
    if (!read_fields(fields))
        return;
    struct prctl_mm_map map = {
        .start_code = fields[START_CODE],
        .end_code = fields[END_CODE],
        .start_data = fields[START_DATA],
        .end_data = fields[END_DATA],
        .start_brk = fields[START_BRK],
        .brk = (unsigned long long)syscall(SYS_brk, 0),
        .start_stack = fields[START_STACK],
        .arg_start = fields[ARG_START],
        .arg_end = fields[ARG_END],
        .env_start = fields[ENV_START],
        .env_end = (uintptr_t)end,
        .exe_fd = (uint32_t)-1,
    };
    prctl(PR_SET_MM, PR_SET_MM_MAP, &map, sizeof map, 0);
}

void environment_forget(void)
{
    char **variable = environ;
    while (variable && *variable && !is_first_own(*variable))
        variable++;
    if (!variable || !*variable)
        return;
    /* The kernel has put the name of the executed file behind the variables; what the program's
     * libraries have set since lies elsewhere. */
    char *begin = *variable, *end = (char *)getauxval(AT_EXECFN);
    char **to = environ;
    for (char **from = environ; *from; from++)
        if (*from < begin || *from >= end)
            *to++ = *from;
    *to = NULL;
    if (begin < end) {
        memset(begin, 0, (size_t)(end - begin));
        end_at(begin);
    }
}
