//! Exported tests in C: one runs a program on the input, the other calls the entry function of a
//! harness. Both start a process and judge how it ended.

use std::os::unix::ffi::OsStrExt;

use super::dumps::{elements, string};
use super::{OF_SIGNALS, ProgramCall, Reproducer, needs, statuses, time_limit};
use ddfuzz_exec::{LOCALE, Sanitizer, Target, sanitizer_options};
use ddfuzz_triage::Trap;

/// C code of an exported test that runs a program; it follows the generated constants.
const PROGRAM_MAIN: &str = include_str!("templates/program.c.in");

/// Generates a C program that runs the target on the input. It exits with 0 if the bug is fixed, 1
/// if the input still fails, and 2 if that cannot be decided. A command-line argument, if given,
/// names another program to run instead; `file` is the name of the C file.
pub fn c_program_test(of: &Reproducer, called: &ProgramCall<'_>, file: &str) -> String {
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
         static const int takes_file = {};\n{}{}{PROGRAM_MAIN}",
        of.title(),
        elements(&of.input),
        of.input.len(),
        string(called.program.as_os_str().as_bytes()),
        i32::from(target.takes_file()),
        judging(of, target, build),
        needs_table(of),
    )
}

/// Generates the C source text of a table of compiler flags (sanitizer, debug assertions) without
/// which the program cannot show the crash. A row has a flag and some texts, at least one of which
/// is in the file of every program that was compiled with the flag; the exported test looks for
/// them.
fn needs_table(of: &Reproducer) -> String {
    let mut table = String::from(
        "\n// One of these texts stands in programs that were compiled so.\n\
         static const struct {\n    const char *texts[8];\n    int checked;\n    const char *flag;\n\
         } needs[] = {\n",
    );
    for need in needs(of) {
        let texts = need.texts.iter().map(|text| string(text));
        let texts: Vec<String> = texts.collect();
        table.push_str(&format!(
            "    {{{{{}, NULL}}, {}, {}}},\n",
            texts.join(", "),
            i32::from(need.needs_type_name),
            string(need.flag.as_bytes()),
        ));
    }
    table + "    {{NULL}, 0, NULL},\n};\n"
}

/// The entry function of a harness that a C test calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EntryFunction {
    /// The test calls `target_main`, as ddfuzz's bundled targets have it, which returns an exit
    /// status.
    TargetMain,
    /// The test calls `LLVMFuzzerTestOneInput`, after `LLVMFuzzerInitialize` if the harness has
    /// that function.
    LibFuzzer,
}

/// A harness with which an exported C test is linked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LinkedHarness<'a> {
    /// Which entry function of the harness the exported C test calls.
    pub function: EntryFunction,
    /// Target of the recorded run, which gives the environment variables and the working directory.
    pub target: &'a Target,
    /// Sanitizers with which the harness is compiled, as in `-fsanitize=`.
    pub sanitizers: &'a [String],
    /// Name of the generated C file, for the compiler commands in it.
    pub file: &'a str,
}

const LIBFUZZER: &str = include_str!("templates/libfuzzer.c.in");

const TARGET_MAIN: &str = include_str!("templates/target_main.c.in");

const ENTRY_MAIN: &str = include_str!("templates/entry.c.in");

/// Generates a C program to be linked with the harness, without libFuzzer's `main`. The program
/// calls the harness's entry function on the input in a child process, and exits with 0 if the
/// function returns, 1 if the input still fails, and 2 if that cannot be decided.
pub fn c_entry_test(of: &Reproducer, linked: LinkedHarness<'_>) -> String {
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
         {function}\n{}{}{ENTRY_MAIN}",
        of.title(),
        header(linked, &flags),
        elements(&of.input),
        of.input.len(),
        of.major.to_ascii_uppercase(),
        lacking(of),
        judging(of, linked.target, build),
    )
}

/// Returns the names of the sanitizers to compile the exported C test with: those needed to show
/// the crash and the harness's own.
fn flags<'a>(of: &'a Reproducer, sanitizers: &'a [String]) -> Vec<&'a str> {
    let mut flags: Vec<&str> = Vec::new();
    for flag in of.sanitizers.iter().chain(sanitizers) {
        if !flags.contains(&flag.as_str()) {
            flags.push(flag);
        }
    }
    flags
}

/// Generates the comment with compiler commands at the top of an exported C test. libFuzzer, MSan
/// and HWASan need clang.
fn header(linked: LinkedHarness<'_>, flags: &[&str]) -> String {
    let clang = linked.function == EntryFunction::LibFuzzer
        || flags
            .iter()
            .any(|flag| matches!(*flag, "memory" | "hwaddress"));
    let (cc, cxx) = match clang {
        true => ("clang", "clang++"),
        false => ("cc", "c++"),
    };
    let flags = match flags.join(",") {
        none if none.is_empty() => String::new(),
        flags => format!(" -fsanitize={flags}"),
    };
    let file = linked.file;
    let link = |compiler: &str, test: &str, harness: &str| match linked.function {
        EntryFunction::LibFuzzer => {
            format!("{compiler} -g{flags} -o test {test} {harness} && ./test")
        }
        // Such a harness may have a `main` of its own.
        EntryFunction::TargetMain => format!(
            "{compiler} -g{flags} -Dmain=harness_main -c -o harness.o {harness} && \
             {compiler} -g{flags} -o test {test} harness.o && ./test"
        ),
    };
    let c = link(cc, file, "harness.c");
    let cpp = link(cxx, "test.o", "harness.cc");
    format!(
        "// Compile and run it as shown. It exits with 0 if the bug is fixed, with 1 if it still\n\
         // fails, and with 2 if it cannot decide. Replace harness.c by the sources of the\n\
         // harness, or by their objects compiled with the same flags; libFuzzer is not linked.\n\
         //   {c}\n\
         // For a harness in C++:\n\
         //   {cc} -g{flags} -c -o test.o {file} && {cpp}\n"
    )
}

/// Generates the C function `lacking`, which returns the name of a sanitizer that is needed to show
/// the crash, but with which the test was not compiled; `NULL` if none is missing.
fn lacking(of: &Reproducer) -> String {
    let mut text = "#ifndef __has_feature\n#define __has_feature(name) 0\n#endif\n".to_owned();
    let mut lines = String::new();
    for flag in &of.sanitizers {
        let (gcc, clang) = match Sanitizer::of_flag(flag) {
            _ if of.leaks() => {
                text += "__attribute__((weak)) int __lsan_do_recoverable_leak_check(void);\n";
                let check = "if (!__lsan_do_recoverable_leak_check)";
                lines += &format!("    {check} return \"{flag}\";\n");
                continue;
            }
            Some(Sanitizer::Asan) => ("ADDRESS", "address"),
            Some(Sanitizer::Hwasan) => ("HWADDRESS", "hwaddress"),
            Some(Sanitizer::Msan) => ("MEMORY", "memory"),
            Some(Sanitizer::Tsan) => ("THREAD", "thread"),
            Some(Sanitizer::Lsan) => continue,
            // Compilers define nothing for single checks of UndefinedBehaviorSanitizer.
            Some(Sanitizer::Ubsan) | None => {
                text += "#if !defined(__clang__)\n\
                         __attribute__((weak)) void __ubsan_handle_builtin_unreachable(void *);\n\
                         #endif\n";
                lines += &format!(
                    "#if !defined(__clang__)\n    \
                         if (!__ubsan_handle_builtin_unreachable) return \"{flag}\";\n\
                     #elif !__has_feature(undefined_behavior_sanitizer)\n    \
                         return \"{flag}\";\n#endif\n"
                );
                continue;
            }
        };
        lines += &format!(
            "#if !defined(__SANITIZE_{gcc}__) && !__has_feature({clang}_sanitizer)\n    \
                 return \"{flag}\";\n#endif\n"
        );
    }
    if of.trap == Some(Trap::Check) {
        lines += "#if !__has_feature(undefined_behavior_sanitizer)\n    \
                      return \"undefined -fsanitize-trap=undefined\";\n#endif\n";
    }
    format!("{text}static const char *lacking(void) {{\n{lines}    return NULL;\n}}\n\n")
}

pub(super) const INCLUDES: &str = include_str!("templates/includes.c.in");

/// C code of the exported tests that starts a process, waits for it, and decides if it failed.
const TEXT: &str = include_str!("templates/process.c.in");

/// How the program that an exported C test runs may be compiled: with a sanitizer or without one.
/// This determines the limits and options with which the test runs the program.
#[derive(Clone, Copy, Debug)]
pub(super) struct Build {
    /// Whether the program that the exported C test runs is possibly compiled with a sanitizer.
    pub(super) sanitized: bool,
    /// Whether the program that the exported C test runs is possibly compiled with a sanitizer that
    /// maps terabytes of address space, which rules out a limit on it.
    pub(super) shadowed: bool,
}

/// Generates the C code of an exported test that defines limits, environment and sanitizer options,
/// runs a process, and decides whether it failed.
pub(super) fn judging(of: &Reproducer, target: &Target, build: Build) -> String {
    let mut variables = String::new();
    for (name, value) in &target.env {
        let (name, value) = (string(name.as_bytes()), string(value.as_bytes()));
        variables.push_str(&format!("    {{{name}, {value}}},\n"));
    }
    let directory = target.cwd.as_ref().map(|cwd| cwd.as_os_str().as_bytes());
    let mut failed: Vec<String> = (statuses(of).iter())
        .map(|status| format!("(code) == {status}"))
        .collect();
    if of.of_descendant {
        let (first, last) = (OF_SIGNALS.start(), OF_SIGNALS.end());
        failed.push(format!("((code) >= {first} && (code) <= {last})"));
    }
    let failed = match failed.is_empty() {
        true => "(void)(code), 0".to_owned(),
        false => failed.join(" || "),
    };
    let sanitizers = Sanitizer::ALL.map(|one| string(one.variable().as_bytes()));
    let sanitizers = sanitizers.join(", ");
    let locale = LOCALE.map(|name| string(name.as_bytes())).join(", ");
    let memory = of.memory().unwrap_or(0);
    let options = sanitizer_options(of.leaks(), of.memory().map(|bytes| bytes >> 20));
    let data = of.data(build.shadowed).unwrap_or(0);
    let overflows = of.class.0 == "stackoverflow";
    let stack = if overflows { 8 << 20 } else { 0 };
    format!(
        "// Limits: seconds in all; of processor time in ms, on memory and stack in bytes; 0: none.\n\
         #define SECONDS {}\n#define TIME_MS {}\n#define MEMORY {memory}UL\n\
         #define DATA {data}UL\n#define STACK {stack}UL\n\
         #define FAILED(code) ({failed})\n\
         // Also in a program that had none they are to abort.\n\
         static const char *const sanitizers[] = {{{sanitizers}, NULL}};\n\
         static const char OPTIONS[] = {};\n\
         // What a failed check writes to stderr, also where the program goes on; empty: nothing.\n\
         static const char message[] = {};\n\
         static const char *const variables[][2] = {{\n{variables}    {{NULL, NULL}},\n}};\n\
         static const char directory[] = {}; // empty: the present one\n\
         static const char *const locale[] = {{{locale}, NULL}};\n\
         static const int env_only = {}; // it inherits no variables\n\
         static const int sandboxed = {};\n{TEXT}",
        of.run_limit().as_secs().max(1),
        time_limit(of, build.sanitized).unwrap_or(0),
        string(options.as_bytes()),
        string(of.message().unwrap_or_default().as_bytes()),
        string(directory.unwrap_or_default()),
        i32::from(target.env_only),
        i32::from(!target.sandbox.is_off()),
    )
}
