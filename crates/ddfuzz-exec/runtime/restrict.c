#define _GNU_SOURCE
#include "restrict.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "protocol.h"
#include "serve.h"

/* Numbers of Landlock's interface, which older headers lack; they are the same for all
 * processors. */
enum { ADD_RULE = 445, RESTRICT_SELF = 446, RULE_PATH_BENEATH = 1 };
/* maximum length of one filter */
enum { MOST_INSTRUCTIONS = 1024 };

#ifndef SECCOMP_FILTER_FLAG_SPEC_ALLOW
#define SECCOMP_FILTER_FLAG_SPEC_ALLOW 4
#endif

static int lower(int resource, rlim_t value)
{
    struct rlimit was, want = {value, value};
    if (getrlimit(resource, &was) < 0)
        return -1;
    if (was.rlim_max < value)
        want.rlim_cur = want.rlim_max = was.rlim_max; /* stricter already */
    return setrlimit(resource, &want);
}

int restrict_limits(const struct restrictions *wanted)
{
    if (!wanted->strict)
        return 0;
    return lower(RLIMIT_NOFILE, 256) || lower(RLIMIT_MEMLOCK, 0) || lower(RLIMIT_MSGQUEUE, 0) ? -1
                                                                                             : 0;
}

static int open_below(const char *directory, uint64_t access)
{
    struct {
        uint64_t access;
        int32_t fd;
    } __attribute__((packed)) rule = {access, open(directory, O_PATH | O_DIRECTORY | O_CLOEXEC)};
    if (rule.fd < 0)
        return -1;
    int added = (int)syscall(ADD_RULE, FD_RULES, RULE_PATH_BENEATH, &rule, 0), error = errno;
    close(rule.fd);
    errno = error;
    return added;
}

int restrict_files(const struct restrictions *wanted)
{
    if (!wanted->access)
        return 0;
    /* The launcher adds these rules, because ddfuzz does not see the scratch directory's mount. */
    for (int i = 0; i < wanted->open_count; i++)
        if (open_below(wanted->open[i], wanted->access) < 0)
            return -1;
    if (syscall(RESTRICT_SELF, FD_RULES, 0) < 0)
        return -1;
    return close(FD_RULES);
}

/* Loads a filter, without the speculation mitigation that some kernels then enable: the process
 * could read only its own memory. */
static int load(struct sock_fprog *filter)
{
    if (syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_SPEC_ALLOW, filter) == 0)
        return 0;
    return (int)syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, filter);
}

int restrict_calls(const struct restrictions *wanted)
{
    static struct sock_filter instructions[MOST_INSTRUCTIONS];
    uint32_t count;
    if (!wanted->filtered)
        return 0;
    lseek(FD_FILTERS, 0, SEEK_SET);
    while (read_whole(FD_FILTERS, &count, sizeof count)) {
        struct sock_fprog filter = {(unsigned short)count, instructions};
        if (count > MOST_INSTRUCTIONS
            || !read_whole(FD_FILTERS, instructions, count * sizeof *instructions)) {
            errno = EINVAL;
            return -1;
        }
        if (load(&filter) < 0)
            return -1;
    }
    return close(FD_FILTERS);
}
