//! A C program that runs a program on the input.

use std::os::unix::ffi::OsStrExt;

use super::c_literal::{elements, string};
use super::fails::Fails;
use super::{Called, Reproducer};

const INCLUDES: &str = "#define _GNU_SOURCE
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
";

const WITH_PATH: &str = "
// The argument with the input's path in place of each @@.
static char *with_path(const char *argument, const char *path) {
    char *text = malloc(strlen(argument) * (strlen(path) + 1) + 1);
    if (!text) exit(2);
    char *end = text;
    while (*argument)
        if (argument[0] == '@' && argument[1] == '@') {
            end = stpcpy(end, path);
            argument += 2;
        } else {
            *end++ = *argument++;
        }
    *end = 0;
    return text;
}
";

const MAIN: &str = "
// What cannot be started says so there; closed when it is.
static int refusal[2];

static void refuse(const char *what) {
    perror(what);
    if (write(refusal[1], what, 1) == 1) _exit(2);
    _exit(3);
}

static void start(const char *program, const char *path, const char *scratch) {
    enum { COUNT = sizeof arguments / sizeof *arguments };
    char *argv[COUNT + 1] = {(char *)program};
    for (int i = 0; arguments[i]; i++) argv[i + 1] = with_path(arguments[i], path);
    int in = open(takes_file ? \"/dev/null\" : path, O_RDONLY);
    if (in < 0 || dup2(in, 0) < 0) refuse(path);
    if (env_only && (clearenv() || setenv(\"TMPDIR\", scratch, 1))) refuse(\"TMPDIR\");
    if (sandboxed && setenv(\"HOME\", scratch, 1)) refuse(\"HOME\"); // as it had there
    for (int i = 0; variables[i][0] && variables[i][1]; i++)
        setenv(variables[i][0], variables[i][1], 1);
    if (chdir(*directory ? directory : scratch)) refuse(directory);
    struct rlimit limit = {memory, memory};
    if (memory) setrlimit(RLIMIT_AS, &limit);
    setpgid(0, 0);
    execv(program, argv);
    refuse(program);
}

// The program's status; of one that goes on, that of SIGKILL.
static int ending(pid_t pid) {
    int status;
    for (long left = SECONDS * 100L; left > 0; left--) {
        if (waitpid(pid, &status, WNOHANG) == pid) return status;
        nanosleep(&(struct timespec){0, 10000000}, NULL);
    }
    kill(-pid, SIGKILL);
    kill(pid, SIGKILL);
    waitpid(pid, &status, 0);
    return status;
}

int main(int argc, char **argv) {
    char program[PATH_MAX], byte;
    if (!realpath(argc > 1 ? argv[1] : PROGRAM, program)) return perror(program), 2;
    char scratch[] = \"/tmp/ddfuzz-XXXXXX\", path[sizeof scratch + 8];
    if (pipe2(refusal, O_CLOEXEC)) return perror(\"pipe\"), 2;
    if (!mkdtemp(scratch)) return perror(scratch), 2;
    sprintf(path, \"%s/input\", scratch);
    FILE *file = fopen(path, \"wb\");
    if (!file || fwrite(input, 1, INPUT_SIZE, file) != INPUT_SIZE || fclose(file))
        return perror(path), 2;
    pid_t pid = fork();
    if (pid == 0) start(program, path, scratch);
    close(refusal[1]);
    int status = pid < 0 ? 0 : ending(pid);
    unlink(path);
    if (rmdir(scratch)) fprintf(stderr, \"what it wrote is left in %s\\n\", scratch);
    if (pid < 0 || read(refusal[0], &byte, 1) > 0) return 2;
    return judge(status);
}
";

/// A program that runs the target on the input and ends with 0 where that is fixed, with 1 where
/// it still fails, with 2 where it could not be run. Its first argument names another program.
pub fn c_program_test(of: &Reproducer, called: &Called<'_>) -> String {
    let target = called.target;
    let mut arguments = String::new();
    for argument in &target.args {
        arguments.push_str(&format!("    {},\n", string(argument.as_bytes())));
    }
    let mut variables = String::new();
    for (name, value) in called.variables(of) {
        let (name, value) = (string(name.as_bytes()), string(value.as_bytes()));
        variables.push_str(&format!("    {{{name}, {value}}},\n"));
    }
    let directory = target.cwd.as_ref().map(|cwd| cwd.as_os_str().as_bytes());
    format!(
        "// {}\n\
         // Ends with 0 where that is fixed, with 1 where it still fails.\n\
         //   cc -g -o test THIS_FILE.c && ./test [PROGRAM]\n\
         {INCLUDES}\n\
         static const unsigned char input[] = {{\n{}}};\n\
         enum {{ INPUT_SIZE = {}, SECONDS = {} }};\n\
         static const char PROGRAM[] = {};\n\
         // @@ stands for a file with the input; without it, it is on stdin.\n\
         static const char *const arguments[] = {{\n{arguments}    NULL,\n}};\n\
         static const char *const variables[][2] = {{\n{variables}    {{NULL, NULL}},\n}};\n\
         static const char directory[] = {}; // none: one of its own\n\
         static const int takes_file = {}, env_only = {}, sandboxed = {};\n\
         static const unsigned long memory = {}; // bytes, 0 for no limit\n\n\
         {}{WITH_PATH}{MAIN}",
        of.title(),
        elements(&of.input),
        of.input.len(),
        of.patience().as_secs().max(1),
        string(called.program.as_os_str().as_bytes()),
        string(directory.unwrap_or_default()),
        i32::from(target.takes_file()),
        i32::from(target.env_only),
        i32::from(!target.sandbox.is_off()),
        called.memory(of).unwrap_or(0).saturating_mul(1024),
        judge(&Fails::of(of)),
    )
}

/// The function `judge`, from the status of a process to the test's own.
pub(super) fn judge(fails: &Fails) -> String {
    let fails = match fails {
        Fails::Unless0 => "code != 0".to_owned(),
        Fails::With(statuses) => {
            let each = statuses
                .iter()
                .map(|status| format!("code == {status} || "));
            // By these a shell says that a signal ended what it ran.
            each.collect::<String>() + "(code >= 129 && code <= 159)"
        }
    };
    format!(
        "static int judge(int status) {{\n    \
             int code = WIFEXITED(status) ? WEXITSTATUS(status) : 0;\n    \
             int failed = WIFSIGNALED(status) || {fails};\n    \
             if (WIFSIGNALED(status))\n        \
                 fprintf(stderr, \"it still fails: signal %d ends it\\n\", WTERMSIG(status));\n    \
             else if (failed)\n        \
                 fprintf(stderr, \"it still fails: it ends with status %d\\n\", code);\n    \
             return failed;\n}}\n"
    )
}
