//! A C program that runs a program on the input.

use std::os::unix::ffi::OsStrExt;

use super::c_judge::{Build, INCLUDES, judging};
use super::c_literal::{elements, string};
use super::fails::{self, Need};
use super::{Called, Reproducer};

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

const NEEDS: &str = "
static int has(const char *bytes, size_t size, const char *text) {
    return memmem(bytes, size, text, strlen(text)) != NULL;
}

// Whether the name of a type stands there as UndefinedBehaviorSanitizer is told it, 'int'. Two of
// them are of its runtime, which other sanitizers have, too.
static int has_type(const char *bytes, size_t size) {
    for (size_t at = 1; at + 2 < size; at++) {
        size_t end = at + 1;
        if (bytes[at] != '\\'' || bytes[at - 1]) continue;
        while (end + 1 < size && (isalnum((unsigned char)bytes[end]) ||
                                  bytes[end] == '_' || bytes[end] == ' ' || bytes[end] == '*'))
            end++;
        if (end > at + 1 && bytes[end] == '\\'' && !bytes[end + 1] &&
            strcmp(bytes + at, \"'bool'\") && strcmp(bytes + at, \"'BOOL'\"))
            return 1;
    }
    return 0;
}

// What the program was to be compiled with to show this crash, and was not; NULL where there is
// nothing, and of a script.
static const char *lacking(const char *program) {
    struct stat facts;
    const char *flag = NULL;
    int file = open(program, O_RDONLY | O_CLOEXEC);
    if (file < 0 || fstat(file, &facts)) return NULL;
    size_t size = facts.st_size;
    char *bytes = mmap(NULL, size, PROT_READ, MAP_PRIVATE, file, 0);
    close(file);
    if (bytes == MAP_FAILED || size < 4 || memcmp(bytes, \"\\177ELF\", 4)) return NULL;
    for (int i = 0; !flag && needs[i].flag; i++) {
        int found = 0;
        for (int j = 0; needs[i].texts[j]; j++) found |= has(bytes, size, needs[i].texts[j]);
        if (!found || (needs[i].checked && !has_type(bytes, size))) flag = needs[i].flag;
    }
    munmap(bytes, size);
    return flag;
}
";

const MAIN: &str = "
static void start(const char *program, const char *path, const char *scratch) {
    enum { COUNT = sizeof arguments / sizeof *arguments };
    char *argv[COUNT + 1] = {(char *)program};
    for (int i = 0; arguments[i]; i++) argv[i + 1] = with_path(arguments[i], path);
    int in = open(takes_file ? \"/dev/null\" : path, O_RDONLY);
    if (in < 0 || dup2(in, 0) < 0) refuse(path);
    if (env_only && (clearenv() || setenv(\"TMPDIR\", scratch, 1))) refuse(\"TMPDIR\");
    if (chdir(scratch)) refuse(scratch); // unless it has another
    surround(scratch);
    limit_all();
    execv(program, argv);
    refuse(program);
}

int main(int argc, char **argv) {
    char program[PATH_MAX];
    if (!realpath(argc > 1 ? argv[1] : PROGRAM, program)) return perror(program), 2;
    const char *lacks = lacking(program);
    if (lacks) return fprintf(stderr, \"cannot tell: compile %s with %s\\n\", program, lacks), 2;
    char scratch[] = \"/tmp/ddfuzz-XXXXXX\", path[sizeof scratch + 8];
    if (pipe2(refusal, O_CLOEXEC)) return perror(\"pipe\"), 2;
    if (!mkdtemp(scratch)) return perror(scratch), 2;
    sprintf(path, \"%s/input\", scratch);
    FILE *file = fopen(path, \"wb\");
    if (!file || fwrite(input, 1, INPUT_SIZE, file) != INPUT_SIZE || fclose(file))
        return perror(path), 2;
    pid_t pid = fork();
    if (pid == 0) start(program, path, scratch);
    return finish(pid, scratch);
}
";

/// A program that runs the target on the input and ends with 0 where that is fixed, with 1 where
/// it still fails, with 2 where that cannot be told. Its first argument names another program.
/// `file` is the name of its own file.
pub fn c_program_test(of: &Reproducer, called: &Called<'_>, file: &str) -> String {
    let target = called.target;
    let mut arguments = String::new();
    for argument in &target.args {
        arguments.push_str(&format!("    {},\n", string(argument.as_bytes())));
    }
    let build = Build {
        sanitized: called.is_sanitized(of),
        shadowed: called.is_shadowed(of),
    };
    format!(
        "// {}\n\
         // Compile and run it as shown. It exits with 0 if the bug is fixed, with 1 if it still\n\
         // fails, and with 2 if it cannot decide.\n\
         //   cc -g -o test {file} && ./test [PROGRAM]\n\
         {INCLUDES}#include <ctype.h>\n#include <sys/mman.h>\n#include <sys/stat.h>\n\n\
         static const unsigned char input[] = {{\n{}}};\n\
         enum {{ INPUT_SIZE = {} }};\n\
         static const char PROGRAM[] = {};\n\
         // @@ is replaced by the path of a file with the input; without @@ the input is on stdin.\n\
         static const char *const arguments[] = {{\n{arguments}    NULL,\n}};\n\
         static const int takes_file = {}, env_only = {};\n{}{}{NEEDS}{WITH_PATH}{MAIN}",
        of.title(),
        elements(&of.input),
        of.input.len(),
        string(called.program.as_os_str().as_bytes()),
        i32::from(target.takes_file()),
        i32::from(target.env_only),
        judging(of, target, build),
        needs(of),
    )
}

/// The table of what a program needs to show the crash.
fn needs(of: &Reproducer) -> String {
    let mut table = String::from(
        "\n// One of these texts stands in programs that were compiled so.\n\
         static const struct {\n    const char *texts[8];\n    int checked;\n    const char *flag;\n\
         } needs[] = {\n",
    );
    for Need {
        texts,
        checked,
        flag,
    } in fails::needs(of)
    {
        let texts = texts.iter().map(|text| string(text.as_bytes()));
        let texts: Vec<String> = texts.collect();
        table.push_str(&format!(
            "    {{{{{}, NULL}}, {}, {}}},\n",
            texts.join(", "),
            i32::from(checked),
            string(flag.as_bytes()),
        ));
    }
    table + "    {{NULL}, 0, NULL},\n};\n"
}
