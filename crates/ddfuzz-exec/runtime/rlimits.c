#define _GNU_SOURCE
#include "rlimits.h"

#include <errno.h>
#include <grp.h>
#include <sys/personality.h>
#include <sys/prctl.h>
#include <unistd.h>

static int limit(int resource, rlim_t value)
{
    struct rlimit was, want = {value, value};
    if (value == 0)
        return 0;
    if (getrlimit(resource, &was) < 0)
        return -1;
    if (was.rlim_max < value)
        want.rlim_cur = want.rlim_max = was.rlim_max; /* stricter already */
    return setrlimit(resource, &want);
}

static int set_limits(const struct confinement *wanted)
{
    /* RLIMIT_CORE is 1: too small for a core file. With 0, a core_pattern with a pipe would
     * still start its collector for each crash. */
    return limit(RLIMIT_DATA, wanted->data) || limit(RLIMIT_FSIZE, wanted->file_size)
                   || limit(RLIMIT_NPROC, wanted->processes) || limit(RLIMIT_CORE, 1)
               ? -1
               : 0;
}

static int join_cgroup(int fd)
{
    int joined = write(fd, "0", 1) == 1;
    int error = errno;
    close(fd);
    errno = error;
    return joined ? 0 : -1;
}

/* Disables address-space layout randomization, if that is permitted. */
static void fix_addresses(void)
{
    int now = personality(0xffffffff);
    if (now != -1)
        personality((unsigned long)now | ADDR_NO_RANDOMIZE);
}

static int step_down(uid_t uid, gid_t gid)
{
    return setgroups(0, NULL) < 0 || setresgid(gid, gid, gid) < 0 || setresuid(uid, uid, uid) < 0
               ? -1
               : 0;
}

int confine(const struct confinement *wanted)
{
    if (wanted->cgroup >= 0 && join_cgroup(wanted->cgroup) < 0)
        return errno;
    if (set_limits(wanted) < 0)
        return errno;
    if (wanted->fixed_addresses)
        fix_addresses();
    if (wanted->drop && step_down(wanted->uid, wanted->gid) < 0)
        return errno;
    if (wanted->directory && chdir(wanted->directory) < 0)
        return errno;
    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); /* setuid programs get no privileges */
    return 0;
}
