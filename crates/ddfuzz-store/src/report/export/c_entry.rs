//! A C program that calls the entry function of a harness on the input.

use super::Reproducer;
use super::c_judge::{Build, INCLUDES, judging};
use super::c_literal::elements;
use ddfuzz_exec::{Sanitizer, Target};

/// Whose entry function a harness has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EntryFunction {
    /// `target_main` of ddfuzz's own targets, which returns an exit status.
    TargetMain,
    /// `LLVMFuzzerTestOneInput`, and `LLVMFuzzerInitialize` where there is one.
    LibFuzzer,
}

/// A harness that C can be linked with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Linked<'a> {
    /// Its entry.
    pub function: EntryFunction,
    /// Its variables and its directory.
    pub target: &'a Target,
    /// Its sanitizers, as `-fsanitize=` names them.
    pub sanitizers: &'a [String],
    /// The name of the test's own file.
    pub file: &'a str,
}

const LIBFUZZER: &str = "int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
__attribute__((weak)) int LLVMFuzzerInitialize(int *argc, char ***argv);

// What custom mutators ask of libFuzzer, which is not there: nothing is mutated.
__attribute__((weak)) size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t most) {
    (void)data;
    (void)most;
    return size;
}

static int call(const uint8_t *data, size_t size, int argc, char **argv) {
    if (LLVMFuzzerInitialize) LLVMFuzzerInitialize(&argc, &argv);
    LLVMFuzzerTestOneInput(data, size);
    return 0;
}
";

const TARGET_MAIN: &str = "int target_main(const uint8_t *data, size_t size);

static int call(const uint8_t *data, size_t size, int argc, char **argv) {
    (void)argc;
    (void)argv;
    return target_main(data, size);
}
";

const MAIN: &str = "
// Overwrites what calls have left on the stack: a pointer there would hide a leak.
__attribute__((noinline)) static void forget(void) {
    volatile char below[1 << 17];
    for (size_t i = 0; i < sizeof below; i++) below[i] = 0;
}

// A copy of exactly its size, so that what reads beyond it can be noticed.
static int child(int argc, char **argv) {
    uint8_t *copy = malloc(INPUT_SIZE ? INPUT_SIZE : 1);
    if (!copy) return 0;
    memcpy(copy, input, INPUT_SIZE);
    int status = call(copy, INPUT_SIZE, argc, argv);
    free(copy);
    forget();
    return status;
}

// Sanitizers read their options when a program begins: so it begins anew.
static void start(char **argv, const char *scratch) {
    surround(scratch);
    limit_all();
    if (setenv(CHILD, \"1\", 1)) refuse(CHILD);
    execv(\"/proc/self/exe\", argv);
    refuse(\"/proc/self/exe\");
}

int main(int argc, char **argv) {
    if (getenv(CHILD)) {
        unsetenv(CHILD);
        return child(argc, argv);
    }
    const char *lacks = lacking();
    if (lacks)
        return fprintf(stderr, \"cannot tell: compile test and harness with -fsanitize=%s\\n\", lacks), 2;
    char scratch[] = \"/tmp/ddfuzz-XXXXXX\";
    if (pipe2(refusal, O_CLOEXEC)) return perror(\"pipe\"), 2;
    if (!mkdtemp(scratch)) return perror(scratch), 2;
    pid_t pid = fork();
    if (pid == 0) start(argv, scratch);
    // No sanitizer is to judge this process, too.
    _exit(finish(pid, scratch));
}
";

/// A program to be linked with the harness (not with libFuzzer, which has a `main`): it ends with
/// 0 where the entry returns, with 1 where it still fails, with 2 where that cannot be told.
pub fn c_entry_test(of: &Reproducer, linked: Linked<'_>) -> String {
    let function = match linked.function {
        EntryFunction::LibFuzzer => LIBFUZZER,
        EntryFunction::TargetMain => TARGET_MAIN,
    };
    let flags = flags(of, linked.sanitizers);
    let shadows = |flag: &&str| Sanitizer::of_flag(flag).is_some_and(Sanitizer::shadows);
    let build = Build {
        sanitized: !flags.is_empty(),
        shadowed: flags.iter().any(shadows),
    };
    format!(
        "// {}\n{}{INCLUDES}\n\
         static const uint8_t input[] = {{\n{}}};\n\
         enum {{ INPUT_SIZE = {} }};\n\
         static const char CHILD[] = \"DDFUZZ_EXPORTED_{}\";\n\n\
         {function}\n{}{}{MAIN}",
        of.title(),
        header(linked, &flags),
        elements(&of.input),
        of.input.len(),
        of.major.to_ascii_uppercase(),
        lacking(of),
        judging(of, linked.target, build),
    )
}

/// The sanitizers to compile it with: those of the build that crashed, and the one that reported it.
fn flags<'a>(of: &'a Reproducer, sanitizers: &'a [String]) -> Vec<&'a str> {
    let mut flags: Vec<&str> = Vec::new();
    for flag in of.sanitizers.iter().chain(sanitizers) {
        if !flags.contains(&flag.as_str()) {
            flags.push(flag);
        }
    }
    flags
}

/// How it is compiled and run. gcc has neither libFuzzer nor MemorySanitizer.
fn header(linked: Linked<'_>, flags: &[&str]) -> String {
    let clang = linked.function == EntryFunction::LibFuzzer
        || flags
            .iter()
            .any(|flag| matches!(*flag, "memory" | "hwaddress"));
    let (cc, cxx) = if clang {
        ("clang", "clang++")
    } else {
        ("cc", "c++")
    };
    let flags = match flags.join(",") {
        none if none.is_empty() => String::new(),
        flags => format!(" -fsanitize={flags}"),
    };
    let file = linked.file;
    format!(
        "// Compile and run it as shown. It exits with 0 if the bug is fixed, with 1 if it still\n\
         // fails, and with 2 if it cannot decide. Replace harness.c by the sources of the\n\
         // harness, or by their objects compiled with the same flags; libFuzzer is not linked.\n\
         //   {cc} -g{flags} -o test {file} harness.c && ./test\n\
         // For a harness in C++:\n\
         //   {cc} -g{flags} -c -o test.o {file} && {cxx} -g{flags} -o test test.o harness.cc && ./test\n"
    )
}

/// The function that says which sanitizer is missing without which this crash does not show.
fn lacking(of: &Reproducer) -> String {
    let mut text = "#ifndef __has_feature\n#define __has_feature(name) 0\n#endif\n".to_owned();
    let mut lines = String::new();
    for flag in &of.sanitizers {
        let condition = match Sanitizer::of_flag(flag) {
            _ if of.leaks() => {
                text.push_str(
                    "__attribute__((weak)) int __lsan_do_recoverable_leak_check(void);\n",
                );
                lines.push_str(&format!(
                    "    if (!__lsan_do_recoverable_leak_check) return \"{flag}\";\n"
                ));
                continue;
            }
            Some(Sanitizer::Asan) => is_off("ADDRESS", "address"),
            Some(Sanitizer::Hwasan) => is_off("HWADDRESS", "hwaddress"),
            Some(Sanitizer::Msan) => is_off("MEMORY", "memory"),
            Some(Sanitizer::Tsan) => is_off("THREAD", "thread"),
            Some(Sanitizer::Lsan) => continue,
            // Of single checks of UndefinedBehaviorSanitizer nothing is defined.
            Some(Sanitizer::Ubsan) | None => {
                text.push_str(
                    "#if !defined(__clang__)\n\
                     __attribute__((weak)) void __ubsan_handle_builtin_unreachable(void *);\n\
                     #endif\n",
                );
                lines.push_str(&format!(
                    "#if !defined(__clang__)\n    \
                         if (!__ubsan_handle_builtin_unreachable) return \"{flag}\";\n\
                     #elif !__has_feature(undefined_behavior_sanitizer)\n    \
                         return \"{flag}\";\n#endif\n"
                ));
                continue;
            }
        };
        lines.push_str(&format!(
            "#if {condition}\n    return \"{flag}\";\n#endif\n"
        ));
    }
    format!("{text}static const char *lacking(void) {{\n{lines}    return NULL;\n}}\n\n")
}

/// What holds for the preprocessor where a sanitizer is off.
fn is_off(gcc: &str, clang: &str) -> String {
    format!("!defined(__SANITIZE_{gcc}__) && !__has_feature({clang}_sanitizer)")
}
