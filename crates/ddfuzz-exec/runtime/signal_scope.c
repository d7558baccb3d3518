#define _GNU_SOURCE
#include "signal_scope.h"

#include <fcntl.h>
#include <stdint.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Numbers of Landlock's interface, which older headers lack; they are the same for all
 * processors. */
enum { CREATE_RULESET = 444, ADD_RULE = 445, RESTRICT_SELF = 446 };
enum { SCOPE_SIGNAL = 2, RULE_PATH_BENEATH = 1, MOVE = 1 << 13 };

int signal_scope_supported(void)
{
    enum { ASK_FOR_VERSION = 1, FIRST_WITH_SCOPES = 6 };
    return syscall(CREATE_RULESET, NULL, 0, ASK_FOR_VERSION) >= FIRST_WITH_SCOPES;
}

/* A ruleset without this right would forbid moving files between directories, also in nested
 * rulesets. */
static int allow_moves(int ruleset)
{
    struct {
        uint64_t access;
        int32_t fd;
    } __attribute__((packed)) rule = {MOVE, open("/", O_PATH | O_DIRECTORY | O_CLOEXEC)};
    int added = (int)syscall(ADD_RULE, ruleset, RULE_PATH_BENEATH, &rule, 0);
    if (rule.fd >= 0)
        close(rule.fd);
    return added;
}

int limit_signal_scope(int files_too)
{
    struct {
        uint64_t files, net, scoped;
    } rules = {files_too ? MOVE : 0, 0, SCOPE_SIGNAL};
    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); /* required for RESTRICT_SELF */
    int fd = (int)syscall(CREATE_RULESET, &rules, sizeof rules, 0);
    if (fd < 0)
        return 0;
    int limited = (!files_too || allow_moves(fd) == 0) && syscall(RESTRICT_SELF, fd, 0) == 0;
    close(fd);
    return limited;
}
