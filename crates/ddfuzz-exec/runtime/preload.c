#define _GNU_SOURCE
#include "preload.h"
#include "snapshot.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define EXPORTED __attribute__((visibility("default")))

enum { MOST_VARIABLES = 1024 };

extern char **environ;
static const char variable[] = "LD_PRELOAD=";

/* Path of this library; empty if it is unknown. */
static const char *own_path(void)
{
    static char path[PATH_MAX];
    Dl_info info;
    if (!*path && dladdr(variable, &info) && info.dli_fname
        && strlen(info.dli_fname) < sizeof path)
        strcpy(path, info.dli_fname);
    return path;
}

void preload_forget(void)
{
    const char *list = getenv("LD_PRELOAD"), *own = own_path();
    size_t length = strlen(own);
    if (!list || !length || strncmp(list, own, length) != 0)
        return;
    if (list[length] == ':')
        setenv("LD_PRELOAD", list + length + 1, 1);
    else if (!list[length])
        unsetenv("LD_PRELOAD");
}

/* Copies the environment with this library put first in LD_PRELOAD. Uses the caller's stack:
 * between vfork and execve nothing may be allocated. Returns 0 if the space is too small. */
static int with_own(char *const *from, char **to, char *line, size_t room)
{
    const char *own = own_path(), *theirs = NULL;
    size_t count = 1;
    for (; from && *from; from++) {
        if (strncmp(*from, variable, sizeof variable - 1) == 0)
            theirs = *from + sizeof variable - 1;
        else if (count + 1 < MOST_VARIABLES)
            to[count++] = *from;
        else
            return 0;
    }
    size_t needed = sizeof variable + strlen(own) + (theirs ? strlen(theirs) + 1 : 0);
    if (!*own || needed > room || fcntl(FD_SNAPSHOT, F_GETFD) < 0)
        return 0;
    strcpy(line, variable);
    strcat(line, own);
    if (theirs && *theirs) {
        strcat(line, ":");
        strcat(line, theirs);
    }
    to[0] = line;
    to[count] = NULL;
    return 1;
}

static void find(void *function, const char *name)
{
    void *found = dlsym(RTLD_NEXT, name);
    memcpy(function, &found, sizeof found);
}

EXPORTED int execve(const char *path, char *const *argv, char *const *envp)
{
    static int (*real)(const char *, char *const *, char *const *);
    char *changed[MOST_VARIABLES], line[2 * PATH_MAX];
    if (!real)
        find(&real, "execve");
    return real(path, argv, with_own(envp, changed, line, sizeof line) ? changed : envp);
}

EXPORTED int execv(const char *path, char *const *argv)
{
    return execve(path, argv, environ);
}

EXPORTED int execvpe(const char *file, char *const *argv, char *const *envp)
{
    static int (*real)(const char *, char *const *, char *const *);
    char *changed[MOST_VARIABLES], line[2 * PATH_MAX];
    if (!real)
        find(&real, "execvpe");
    return real(file, argv, with_own(envp, changed, line, sizeof line) ? changed : envp);
}

EXPORTED int execvp(const char *file, char *const *argv)
{
    return execvpe(file, argv, environ);
}

typedef int (*spawn_function)(pid_t *, const char *, const posix_spawn_file_actions_t *,
                              const posix_spawnattr_t *, char *const *, char *const *);

EXPORTED int posix_spawn(pid_t *pid, const char *path, const posix_spawn_file_actions_t *actions,
                         const posix_spawnattr_t *attributes, char *const *argv, char *const *envp)
{
    static spawn_function real;
    char *changed[MOST_VARIABLES], line[2 * PATH_MAX];
    if (!real)
        find(&real, "posix_spawn");
    return real(pid, path, actions, attributes, argv,
                with_own(envp, changed, line, sizeof line) ? changed : envp);
}

EXPORTED int posix_spawnp(pid_t *pid, const char *file, const posix_spawn_file_actions_t *actions,
                          const posix_spawnattr_t *attributes, char *const *argv,
                          char *const *envp)
{
    static spawn_function real;
    char *changed[MOST_VARIABLES], line[2 * PATH_MAX];
    if (!real)
        find(&real, "posix_spawnp");
    return real(pid, file, actions, attributes, argv,
                with_own(envp, changed, line, sizeof line) ? changed : envp);
}
