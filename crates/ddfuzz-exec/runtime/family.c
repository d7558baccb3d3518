#define _GNU_SOURCE
#include "family.h"
#include "sweep.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>

/* Between the fourth field of /proc/PID/stat and the eleventh, the minor faults of the reaped. */
enum { FIELDS_BEFORE = 7 };

int family_reaped(pid_t child)
{
    siginfo_t info;
    char stat[512];
    info.si_code = 0;
    while (waitid(P_PID, (id_t)child, &info, WEXITED | WNOWAIT) < 0)
        if (errno != EINTR)
            return 0;
    if (info.si_code == CLD_TRAPPED || info.si_code == CLD_STOPPED)
        return 0;
    char *at = sweep_read_stat(child, stat, sizeof stat);
    for (int field = 0; at && field < FIELDS_BEFORE; field++) {
        at = strchr(at, ' ');
        if (at)
            at++;
    }
    return at && *at != '0';
}
