/* Calls within the C library (system, pclose) are not seen here, nor those of programs that a
 * child has executed: a run with traced descendants sees these, too. */
#define _GNU_SOURCE
#include "wait_wrappers.h"

#include <dlfcn.h>
#include <signal.h>
#include <stddef.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#define OURS __attribute__((visibility("default")))

/* Shared with all descendants. A target that overwrites it spoils only its own run. */
static struct {
    volatile int forked, crashed;
} *reports;
static pid_t server;

void wait_wrappers_prepare(void)
{
    void *shared = mmap(NULL, sizeof *reports, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS,
                        -1, 0);
    reports = shared == MAP_FAILED ? NULL : shared;
    server = getpid();
}

const volatile void *wait_wrappers_memory(void)
{
    return reports;
}

/* Compares process ids: a variable in the child would cost a copied page. */
static int is_reporting(void)
{
    return reports && getpid() != server;
}

static int is_crash(int number)
{
    return number == SIGSEGV || number == SIGBUS || number == SIGFPE || number == SIGILL
           || number == SIGABRT || number == SIGSYS || number == SIGTRAP;
}

void wait_wrappers_collect(struct page *page)
{
    page->crashed = 0;
    if (!reports || !(reports->forked | reports->crashed))
        return;
    page->forked = 1;
    if (is_crash(reports->crashed))
        page->crashed = reports->crashed;
    reports->forked = reports->crashed = 0;
}

void wait_wrappers_forget(void)
{
    if (reports)
        reports->forked = reports->crashed = 0;
}

void report_start(void)
{
    if (is_reporting())
        reports->forked = 1;
}

static void report_crash(int number)
{
    if (is_reporting() && is_crash(number) && !reports->crashed)
        reports->crashed = number;
}

/* Leaves errno unchanged, as all functions here. */
static void report_status(pid_t reaped, int status)
{
    if (reaped > 0)
        report_start(); /* started by vfork, for example, which is not wrapped */
    if (reaped > 0 && WIFSIGNALED(status))
        report_crash(WTERMSIG(status));
}

void wait_wrappers_find(const char *name, void *found)
{
    void *symbol = dlsym(RTLD_NEXT, name);
    memcpy(found, &symbol, sizeof symbol);
}

/* Looked up when the library is loaded: a signal handler may call them. */
static pid_t (*next_wait4)(pid_t, int *, int, struct rusage *);
static pid_t (*next_waitpid)(pid_t, int *, int);
static pid_t (*next_wait)(int *);
static int (*next_waitid)(idtype_t, id_t, siginfo_t *, int);

__attribute__((constructor)) static void find_all(void)
{
    if (next_waitid)
        return;
    wait_wrappers_find("wait", &next_wait);
    wait_wrappers_find("waitpid", &next_waitpid);
    wait_wrappers_find("wait4", &next_wait4);
    wait_wrappers_find("waitid", &next_waitid);
}

OURS pid_t wait4(pid_t pid, int *status, int options, struct rusage *usage)
{
    int own = 0;
    find_all();
    status = status ? status : &own;
    pid_t reaped = next_wait4(pid, status, options, usage);
    report_status(reaped, reaped > 0 ? *status : 0);
    return reaped;
}

OURS pid_t wait3(int *status, int options, struct rusage *usage)
{
    return wait4(-1, status, options, usage);
}

OURS pid_t waitpid(pid_t pid, int *status, int options)
{
    int own = 0;
    find_all();
    status = status ? status : &own;
    pid_t reaped = next_waitpid(pid, status, options);
    report_status(reaped, reaped > 0 ? *status : 0);
    return reaped;
}

OURS pid_t wait(int *status)
{
    int own = 0;
    find_all();
    status = status ? status : &own;
    pid_t reaped = next_wait(status);
    report_status(reaped, reaped > 0 ? *status : 0);
    return reaped;
}

OURS int waitid(idtype_t type, id_t id, siginfo_t *info, int options)
{
    find_all();
    int result = next_waitid(type, id, info, options);
    if (result != 0 || !info || info->si_pid <= 0)
        return result;
    report_start();
    if (info->si_code == CLD_KILLED || info->si_code == CLD_DUMPED)
        report_crash(info->si_status);
    return result;
}
