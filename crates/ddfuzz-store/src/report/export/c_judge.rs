//! What the exported programs of C have in common: they judge how another process ended.

use std::os::unix::ffi::OsStrExt;

use super::c_literal::string;
use super::{Reproducer, fails};
use ddfuzz_exec::{Sanitizer, Target, sanitizer_options};

pub(super) const INCLUDES: &str = "#define _GNU_SOURCE
#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
";

/// How the process begins and ends; the constants stand before.
const TEXT: &str = "
// What cannot be started says so there; closed when it is.
static int refusal[2];

static void refuse(const char *what) {
    perror(what);
    if (write(refusal[1], what, 1) == 1) _exit(2);
    _exit(3);
}

// What the process that is to fail begins with.
static void limit(int resource, unsigned long value) {
    struct rlimit was;
    if (!value || getrlimit(resource, &was)) return;
    was.rlim_cur = was.rlim_max < value ? was.rlim_max : value;
    setrlimit(resource, &was);
}

static void limit_all(void) {
    struct rlimit none = {0, 0};
    // SIGPROF ends what takes much more processor time; the timer outlives execve.
    struct itimerval most = {{0, 0}, {TIME_MS * 2 / 1000 + 1, 0}};
    limit(RLIMIT_DATA, DATA);
    limit(RLIMIT_STACK, STACK);
    setrlimit(RLIMIT_CORE, &none);
    setpgid(0, 0);
    if (TIME_MS) setitimer(ITIMER_PROF, &most, NULL);
}

// They stand after the user's own options: of one given twice the later one holds.
static void tell_sanitizers(const char *scratch) {
    for (int i = 0; sanitizers[i]; i++) {
        char value[2 * PATH_MAX];
        const char *own = getenv(sanitizers[i]);
        snprintf(value, sizeof value, \"%s%s%s:log_path=%s/report\", own ? own : \"\",
                 own && *own ? \":\" : \"\", OPTIONS, scratch);
        setenv(sanitizers[i], value, 1);
    }
}

// The variables that the process has besides, and its directory.
static void surround(const char *scratch) {
    if (sandboxed && setenv(\"HOME\", scratch, 1)) refuse(\"HOME\"); // as it had there
    for (int i = 0; variables[i][0] && variables[i][1]; i++)
        setenv(variables[i][0], variables[i][1], 1);
    tell_sanitizers(scratch);
    if (*directory && chdir(directory)) refuse(directory);
}

// Shows the reports that sanitizers have left, and removes them; how many there were.
static int reports(const char *scratch) {
    int count = 0;
    DIR *dir = opendir(scratch);
    for (struct dirent *found; dir && (found = readdir(dir));) {
        char path[PATH_MAX], text[4096];
        if (strncmp(found->d_name, \"report.\", 7)) continue;
        snprintf(path, sizeof path, \"%s/%s\", scratch, found->d_name);
        FILE *report = fopen(path, \"rb\");
        for (size_t read; report && (read = fread(text, 1, sizeof text, report)) > 0;)
            fwrite(text, 1, read, stderr);
        if (report) fclose(report);
        unlink(path);
        count++;
    }
    if (dir) closedir(dir);
    return count;
}

// The process's status; of one that goes on, that of SIGKILL.
static int ending(pid_t pid, struct rusage *used) {
    int status;
    for (long left = SECONDS * 100L; left > 0; left--) {
        if (wait4(pid, &status, WNOHANG, used) == pid) return status;
        nanosleep(&(struct timespec){0, 10000000}, NULL);
    }
    kill(-pid, SIGKILL);
    kill(pid, SIGKILL);
    wait4(pid, &status, 0, used);
    return status;
}

// 1 where it still fails, else 0.
static int judge(int status, const struct rusage *used, const char *scratch) {
    int code = WIFEXITED(status) ? WEXITSTATUS(status) : 0;
    int signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
    long ms = (used->ru_utime.tv_sec + used->ru_stime.tv_sec) * 1000 +
              (used->ru_utime.tv_usec + used->ru_stime.tv_usec) / 1000;
    int reported = reports(scratch);
    if (TIME_MS && (signal == SIGPROF || signal == SIGKILL || ms > TIME_MS))
        return fprintf(stderr, \"it still hangs: it took %ld ms of processor time\\n\", ms), 1;
    if (MEMORY && (unsigned long)used->ru_maxrss > MEMORY / 1024)
        return fprintf(stderr, \"it still fails: it took %ld KiB of memory\\n\", used->ru_maxrss), 1;
    if (signal) return fprintf(stderr, \"it still fails: signal %d ends it\\n\", signal), 1;
    if (FAILED(code))
        return fprintf(stderr, \"it still fails: it ends with status %d\\n\", code), 1;
    if (reported) return fprintf(stderr, \"it still fails: a sanitizer has reported it\\n\"), 1;
    return 0;
}

// The test's own status; the directory is removed, with the input in it.
static int finish(pid_t pid, const char *scratch) {
    char byte, path[PATH_MAX];
    struct rusage used = {0};
    close(refusal[1]);
    int failed = pid < 0 ? 0 : judge(ending(pid, &used), &used, scratch);
    snprintf(path, sizeof path, \"%s/input\", scratch);
    unlink(path);
    if (rmdir(scratch)) fprintf(stderr, \"what it wrote is left in %s\\n\", scratch);
    if (pid < 0 || read(refusal[0], &byte, 1) > 0) return 2;
    return failed;
}
";

/// What is known of the sanitizers of the process.
#[derive(Clone, Copy, Debug)]
pub(super) struct Build {
    /// It has one.
    pub(super) sanitized: bool,
    /// It has one of those that need terabytes of address space.
    pub(super) shadowed: bool,
}

/// Its limits, variables and directory, what its sanitizers are told, and the functions that start
/// it, wait and judge.
pub(super) fn judging(of: &Reproducer, target: &Target, build: Build) -> String {
    let mut variables = String::new();
    for (name, value) in &target.env {
        let (name, value) = (string(name.as_bytes()), string(value.as_bytes()));
        variables.push_str(&format!("    {{{name}, {value}}},\n"));
    }
    let directory = target.cwd.as_ref().map(|cwd| cwd.as_os_str().as_bytes());
    let statuses = fails::statuses(of).into_iter();
    let each: String = statuses
        .map(|status| format!("(code) == {status} || "))
        .collect();
    let sanitizers = Sanitizer::ALL.map(|one| string(one.variable().as_bytes()));
    let sanitizers = sanitizers.join(", ");
    let memory = of.memory().unwrap_or(0);
    let options = sanitizer_options(of.leaks(), of.memory().map(|bytes| bytes >> 20));
    // As a backstop twice the memory, as writable private memory.
    let data = if build.shadowed {
        0
    } else {
        memory.saturating_mul(2)
    };
    let stack = if of.class.0 == "stackoverflow" {
        8 << 20
    } else {
        0
    };
    format!(
        "// Limits: seconds in all; of processor time in ms, on memory and stack in bytes; 0: none.\n\
         #define SECONDS {}\n#define TIME_MS {}\n#define MEMORY {memory}UL\n\
         #define DATA {data}UL\n#define STACK {stack}UL\n\
         // By 129 to 159 a shell says that a signal ended what it ran.\n\
         #define FAILED(code) ({each}((code) >= 129 && (code) <= 159))\n\
         // Also in a program that had none they are to abort.\n\
         static const char *const sanitizers[] = {{{sanitizers}, NULL}};\n\
         static const char OPTIONS[] = {};\n\
         static const char *const variables[][2] = {{\n{variables}    {{NULL, NULL}},\n}};\n\
         static const char directory[] = {}; // empty: the present one\n\
         static const int sandboxed = {};\n{TEXT}",
        of.patience().as_secs().max(1),
        fails::time_limit(of, build.sanitized).unwrap_or(0),
        string(options.as_bytes()),
        string(directory.unwrap_or_default()),
        i32::from(!target.sandbox.is_off()),
    )
}
