//! What is exported of each class of crash fails on the source with the bug and passes on the fixed
//! one, compiled and run as its first lines say; of a build that cannot show the crash it says so.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use crate::ddfuzz::Desk;
use crate::needs;

/// A bug, and how it shows.
struct Bug {
    /// What its class begins with.
    class: &'static str,
    /// What it is compiled with to show itself; nothing where it always does.
    sanitizer: &'static str,
    /// A body of C and C++ with the bug wherever `BUG` holds.
    body: &'static str,
}

const ASAN: Bug = Bug {
    class: "asan:heap-buffer-overflow",
    sanitizer: "address",
    body: "uint8_t *block = (uint8_t *)malloc(4);\n    held = block;\n    \
           if (BUG) block[4 + size] = 1;\n    free(block);",
};
const UBSAN: Bug = Bug {
    class: "ubsan:signed-integer-overflow",
    sanitizer: "undefined",
    body: "int last = BUG ? INT_MAX : 1;\n    kept = last + data[0];",
};
const MSAN: Bug = Bug {
    class: "msan:use-of-uninitialized-value",
    sanitizer: "memory",
    body: "uint8_t *block = (uint8_t *)malloc(4);\n    held = block;\n    \
           if (!(BUG)) block[0] = 1;\n    if (block[0]) kept = 1;\n    free(block);",
};
const LEAK: Bug = Bug {
    class: "lsan:direct-leak",
    sanitizer: "address",
    // To the last one a register may still lead.
    body: "for (int i = 0; BUG && i < 9; i++) held = (uint8_t *)malloc(99);\n    held = NULL;",
};
const STACK_OVERFLOW: Bug = Bug {
    class: "stackoverflow",
    sanitizer: "",
    body: "kept = BUG ? deeper(1) : 0;",
};
const HANG: Bug = Bug {
    class: "hang",
    sanitizer: "",
    body: "while (BUG) kept = 1;",
};
/// It ends after twice its limit.
const SLOW: Bug = Bug {
    class: "hang",
    sanitizer: "",
    body: "while (BUG && clock() < CLOCKS_PER_SEC / 8) kept = 1;",
};
const OOM: Bug = Bug {
    class: "oom",
    sanitizer: "",
    body: "while (BUG) {\n        uint8_t *block = (uint8_t *)malloc(1 << 20);\n        \
           if (!block) exit(3);\n        memset(block, 1, 1 << 20);\n        held = block;\n    }",
};
const ABORT: Bug = Bug {
    class: "abrt",
    sanitizer: "",
    body: "if (BUG) abort();",
};
const SEGV: Bug = Bug {
    class: "segv",
    sanitizer: "",
    body: "if (BUG) *(volatile int *)8 = 1;",
};

const BEFORE: &str = "#include <limits.h>\n#include <stddef.h>\n#include <stdint.h>\n\
    #include <stdio.h>\n#include <stdlib.h>\n#include <string.h>\n#include <time.h>\n\
    #ifdef __cplusplus\nextern \"C\"\n#endif\n\
    int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);\n\
    static volatile int kept;\nstatic uint8_t *volatile held;\n\
    __attribute__((noinline, unused)) static int deeper(int depth) {\n    \
        volatile char frame[64];\n    frame[depth & 63] = 1;\n    \
        return depth ? deeper(depth | 1) + frame[depth & 63] : 0;\n}\n";

/// Ends as parsers do that refuse an input: not with 0.
const MAIN: &str = "int main(int argc, char **argv) {\n    \
        static uint8_t data[4096];\n    \
        FILE *file = argc > 1 ? fopen(argv[1], \"rb\") : stdin;\n    \
        parse(data, fread(data, 1, sizeof data, file));\n    \
        return 9;\n}\n";

impl Bug {
    /// The source with the bug, or fixed.
    fn source(&self, fixed: bool) -> String {
        let bug = if fixed {
            "data[0] == 'K' + 'k'"
        } else {
            "data[0] == 'k'"
        };
        let body = self.body.replace("BUG", &format!("({bug})"));
        format!(
            "{BEFORE}int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {{\n    \
             if (size == 0) return 0;\n    {body}\n    return 0;\n}}\n"
        )
    }

    /// What a compiler is told, with these sanitizers besides.
    fn flags(&self, more: &str) -> Vec<String> {
        let all = [more, self.sanitizer].join(",");
        let all = all.trim_matches(',').to_owned();
        let plain = ["-g", "-O1", "-w"].map(str::to_owned);
        let sanitizers = (!all.is_empty()).then(|| format!("-fsanitize={all}"));
        plain.into_iter().chain(sanitizers).collect()
    }

    /// Triage of `crash` by this call: the group's folder, in `out`.
    fn group(&self, desk: &Desk, call: &str) -> PathBuf {
        desk.write("crash", "k some input");
        // What is built with a sanitizer, or takes memory, does so for a while.
        let limit = if self.class == "hang" {
            "60ms"
        } else {
            "250ms"
        };
        let words =
            format!("triage crash --timeout {limit} --memory 128M --leaks -o out --json -- {call}");
        let result = desk.call(&words).exits(1).json();
        let class = result["groups"][0]["class"].as_str().unwrap();
        assert_eq!(class, self.class, "{result}");
        let kind = match self.class {
            "hang" => "hangs",
            "oom" => "oom",
            _ => "crashes",
        };
        let major = result["groups"][0]["major"].as_str().unwrap();
        desk.file("out").join(kind).join(major)
    }
}

/// Whether that compiled; where it did not the machine lacks the sanitizer.
fn compiled(desk: &Desk, source: &str, name: &str, flags: &[String]) -> bool {
    let file = desk.write("source.c", source);
    let output = desk
        .command("clang")
        .args(flags)
        .args(["-o", name])
        .arg(file)
        .output()
        .unwrap();
    if !output.status.success() {
        needs::missing(&flags.join(" "), &String::from_utf8_lossy(&output.stderr));
    }
    output.status.success()
}

/// The commands that stand in the first lines of a test of C, by what they are for.
fn commands(desk: &Desk, test: &str) -> Vec<String> {
    let text = String::from_utf8(desk.read(test)).unwrap();
    let lines = text.lines().filter_map(|line| line.strip_prefix("//   "));
    lines.map(str::to_owned).collect()
}

fn shell(desk: &Desk, command: &str) -> (Option<i32>, String) {
    let output: Output = desk.command("sh").args(["-c", command]).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    (output.status.code(), said)
}

#[track_caller]
fn ends(desk: &Desk, command: &str, code: i32) {
    let (ended, said) = shell(desk, command);
    assert_eq!(ended, Some(code), "{command}: {said}");
}

/// A libFuzzer program: its test of C by both commands, its script, its reproduce.sh.
fn harness(bug: &Bug) {
    if needs::program("clang").is_none() {
        return;
    }
    let desk = Desk::new();
    let flags = bug.flags("fuzzer");
    if !compiled(&desk, &bug.source(false), "fuzz", &flags) {
        return;
    }
    let group = bug.group(&desk, "./fuzz");
    let export = |form: &str| {
        let words = format!("export {} --as {form}", group.display());
        desk.call(&words).exits(0);
    };
    export("c-test --to test.c");
    let commands = commands(&desk, "test.c");
    assert_eq!(commands.len(), 2, "{commands:?}");
    for (fixed, code) in [(false, 1), (true, 0)] {
        desk.write("harness.c", bug.source(fixed));
        desk.write("harness.cc", bug.source(fixed));
        for command in &commands {
            ends(&desk, command, code);
        }
    }
    if !bug.sanitizer.is_empty() {
        desk.write("harness.c", bug.source(false));
        let plain = "cc -w -o test test.c harness.c && ./test";
        let (ended, said) = shell(&desk, plain);
        assert_eq!(ended, Some(2), "{said}");
        assert!(
            said.contains(&format!("-fsanitize={}", bug.sanitizer)),
            "{said}"
        );
    }
    export("script --to test.sh");
    ends(&desk, "./test.sh crash", 0);
    let script = shown(&group);
    // How long it took is in no status.
    if bug.class != "hang" {
        let (ended, said) = shell(&desk, &format!("sh {}", script.display()));
        assert_ne!(ended, Some(0), "{said}");
    }
    compiled(&desk, &bug.source(true), "fuzz", &flags);
    ends(&desk, "./test.sh crash", 1);
    ends(&desk, &format!("sh {}", script.display()), 0);
    desk.is_left_clean();
}

/// The script of a group's only entry.
fn shown(group: &Path) -> PathBuf {
    let inside = |folder: &Path| {
        let mut entries = std::fs::read_dir(folder).unwrap().flatten();
        let found = entries.find(|entry| entry.path().is_dir());
        found.unwrap().path()
    };
    inside(&inside(group)).join("reproduce.sh")
}

/// Builds the exported test of Rust, which is to be without warnings.
fn build_test(desk: &Desk) {
    let rustc = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let words = "--edition 2021 -Dwarnings --test -o one one.rs";
    let output = desk
        .command(rustc)
        .args(words.split_whitespace())
        .env("CARGO_MANIFEST_DIR", desk.path())
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
}

/// All tests say that the program has to be compiled with this sanitizer.
fn cannot_tell(desk: &Desk, sanitizer: &str) {
    let needed = format!("-fsanitize={sanitizer}");
    for (command, code) in [("./test", 2), ("./one", 101), ("./test.sh crash", 125)] {
        let (ended, said) = shell(desk, &format!("{command} >&2"));
        assert_eq!(ended, Some(code), "{command}: {said}");
        assert!(said.contains(&needed), "{command}: {said}");
    }
}

/// A program with a main of its own: its tests of C and Rust, its script, its reproduce.sh.
fn program(bug: &Bug, call: &str) {
    if needs::program("clang").is_none() {
        return;
    }
    let desk = Desk::new();
    let flags = bug.flags("");
    // Without an entry that could be called.
    let source = |fixed| {
        let harness = bug.source(fixed);
        let entry = "int LLVMFuzzerTestOneInput(";
        harness.replace(entry, "static int parse(") + MAIN
    };
    if !compiled(&desk, &source(false), "frail", &flags) {
        return;
    }
    let group = bug.group(&desk, call);
    let export = |form: &str| {
        let words = format!("export {} --as {form}", group.display());
        desk.call(&words).exits(0);
    };
    export("c-test --to test.c");
    export("rust-test --to one.rs");
    export("script --to test.sh");
    build_test(&desk);
    let commands = commands(&desk, "test.c");
    let command = commands[0].strip_suffix(" [PROGRAM]").unwrap();
    let shown = format!("sh {}", shown(&group).display());
    ends(&desk, command, 1);
    ends(&desk, "./one", 101);
    ends(&desk, "./test.sh crash", 0);
    // Where it ends as it does anyway, only how long it took or how much told.
    if bug.class != "hang" && bug.class != "oom" {
        let (ended, said) = shell(&desk, &shown);
        assert!(!matches!(ended, Some(0 | 9)), "{said}");
    }
    compiled(&desk, &source(true), "frail", &flags);
    ends(&desk, command, 0);
    ends(&desk, "./one", 0);
    ends(&desk, "./test.sh crash", 1);
    ends(&desk, &shown, 9);
    if !bug.sanitizer.is_empty() {
        compiled(&desk, &source(false), "frail", &["-w".to_owned()]);
        cannot_tell(&desk, bug.sanitizer);
    }
    desk.is_left_clean();
}

#[test]
fn an_overflow_that_addresssanitizer_reports_fails_until_it_is_fixed() {
    harness(&ASAN);
    program(&ASAN, "./frail @@");
}

#[test]
fn an_overflow_that_undefinedbehaviorsanitizer_reports_fails_until_it_is_fixed() {
    harness(&UBSAN);
    program(&UBSAN, "./frail");
}

#[test]
fn what_was_never_written_fails_until_it_is_fixed() {
    harness(&MSAN);
    program(&MSAN, "./frail");
}

#[test]
fn a_leak_fails_until_it_is_fixed() {
    harness(&LEAK);
    program(&LEAK, "./frail");
}

#[test]
fn a_recursion_without_an_end_fails_until_it_is_fixed() {
    harness(&STACK_OVERFLOW);
    program(&STACK_OVERFLOW, "./frail");
}

#[test]
fn a_loop_without_an_end_fails_until_it_is_fixed() {
    harness(&HANG);
    program(&HANG, "./frail @@");
}

#[test]
fn a_loop_that_ends_after_its_limit_fails_until_it_is_fixed() {
    harness(&SLOW);
    program(&SLOW, "./frail");
}

#[test]
fn memory_that_runs_away_fails_until_it_is_fixed() {
    harness(&OOM);
    program(&OOM, "./frail");
}

#[test]
fn an_abort_fails_until_it_is_fixed() {
    harness(&ABORT);
    program(&ABORT, "./frail");
}

#[test]
fn a_null_dereference_fails_until_it_is_fixed() {
    harness(&SEGV);
    program(&SEGV, "./frail");
}

/// A Rust program whose overflow only builds with overflow checks have.
const PANICS: &str = "use std::io::Read;\nfn main() {\n    \
    let mut input = Vec::new();\n    \
    std::io::stdin().read_to_end(&mut input).unwrap();\n    \
    let sum = input.iter().fold(0u8, |sum, byte| ADD);\n    \
    println!(\"{sum}\");\n}\n";

#[test]
fn a_panic_of_rust_fails_tests_of_c_and_rust_until_it_is_fixed() {
    let desk = Desk::new();
    let rustc = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let build = |add: &str, words: &[&str]| {
        desk.write("frail.rs", PANICS.replace("ADD", add));
        let mut command: Command = desk.command(&rustc);
        command.args(["--edition", "2021", "-o", "frail", "frail.rs"]);
        assert!(command.args(words).status().unwrap().success());
    };
    build("sum + *byte", &[]);
    desk.write("crash", "\u{ff}\u{ff}");
    let result = desk
        .call("triage crash -o out --json -- ./frail")
        .exits(1)
        .json();
    assert_eq!(result["groups"][0]["class"], "rustpanic");
    let major = result["groups"][0]["major"].as_str().unwrap();
    for form in ["c-test --to test.c", "rust-test --to one.rs"] {
        let words = format!("export {major} -o out --as {form}");
        desk.call(&words).exits(0);
    }
    build_test(&desk);
    let commands = commands(&desk, "test.c");
    let command = commands[0].strip_suffix(" [PROGRAM]").unwrap();
    ends(&desk, command, 1);
    ends(&desk, "./one", 101);
    build("sum.wrapping_add(*byte)", &[]);
    ends(&desk, command, 0);
    ends(&desk, "./one", 0);
    // A build that wraps around shows no overflow, fixed or not.
    build("sum + *byte", &["-O"]);
    ends(&desk, command, 2);
    ends(&desk, "./one", 101);
}
