/* Wrappers of functions that start processes. vfork cannot be wrapped, because its caller's
 * frame must outlive the child; its children are reported when they are reaped. */
#define _GNU_SOURCE
#include "wait_wrappers.h"

#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define OURS __attribute__((visibility("default")))

/* Looked up when the library is loaded: a signal handler may fork. */
static pid_t (*next_fork)(void);
static int (*next_system)(const char *);
static FILE *(*next_popen)(const char *, const char *);
typedef int spawn_function(pid_t *, const char *, const posix_spawn_file_actions_t *,
                           const posix_spawnattr_t *, char *const[], char *const[]);
static spawn_function *next_spawn, *next_spawnp;

__attribute__((constructor)) static void find_all(void)
{
    if (next_spawnp)
        return;
    wait_wrappers_find("fork", &next_fork);
    wait_wrappers_find("system", &next_system);
    wait_wrappers_find("popen", &next_popen);
    wait_wrappers_find("posix_spawn", &next_spawn);
    wait_wrappers_find("posix_spawnp", &next_spawnp);
}

OURS pid_t fork(void)
{
    find_all();
    report_start();
    return next_fork();
}

OURS int system(const char *command)
{
    find_all();
    report_start();
    return next_system(command);
}

OURS FILE *popen(const char *command, const char *mode)
{
    find_all();
    report_start();
    return next_popen(command, mode);
}

OURS int posix_spawn(pid_t *pid, const char *path, const posix_spawn_file_actions_t *actions,
                     const posix_spawnattr_t *attributes, char *const argv[], char *const envp[])
{
    find_all();
    report_start();
    return next_spawn(pid, path, actions, attributes, argv, envp);
}

OURS int posix_spawnp(pid_t *pid, const char *file, const posix_spawn_file_actions_t *actions,
                      const posix_spawnattr_t *attributes, char *const argv[], char *const envp[])
{
    find_all();
    report_start();
    return next_spawnp(pid, file, actions, attributes, argv, envp);
}
