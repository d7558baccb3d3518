//! Builds without the check, and broken builds, of which `check` must not say that a bug is fixed.

use std::os::unix::fs::PermissionsExt;

use crate::ddfuzz::Desk;
use crate::needs;

/// A crash by a check of the compiler's, where there is one, and by a trap of its own.
const CHECKED: &str = "\
#include <stdio.h>
int sum(int a, int b) { return a + b; }
int trapped(int letter) {
#ifdef TRAPS
    if (letter == 't') __builtin_trap();
#endif
#ifdef KEPT
    if (letter == 'k') __builtin_trap();
#endif
    return letter;
}
int main(void) {
    int letter = getchar();
    int last = letter == 'o' ? 0x7fffffff : 1;
    return sum(last, letter) == trapped(letter);
}
";

/// Compiles [`CHECKED`] as `name`; `None` where there is no such compiler.
fn build(desk: &Desk, compiler: &str, name: &str, flags: &str) -> Option<()> {
    needs::program(compiler)?;
    let source = desk.write("checked.c", CHECKED);
    let mut command = desk.command(compiler);
    command.args(["-O1", "-fno-inline", "-o", name]).arg(source);
    let made = command.args(flags.split_whitespace()).status().unwrap();
    assert!(made.success());
    Some(())
}

#[test]
fn checks_of_the_minimal_runtime_are_named_and_a_build_that_cannot_show_them_is_no_fix() {
    let desk = Desk::new();
    let checks = "-fsanitize=signed-integer-overflow -fsanitize-minimal-runtime";
    let aborting = format!("{checks} -fno-sanitize-recover=all");
    if build(&desk, "clang", "checked", &aborting).is_none() {
        return;
    }
    build(&desk, "clang", "plain", "");
    build(&desk, "clang", "goes-on", checks);
    build(&desk, "clang", "same", &format!("{aborting} -O2"));
    desk.write("overflow", "o");
    let found = desk.call("triage overflow -o out --json -- ./checked");
    let group = &found.exits(1).json()["groups"][0];
    assert_eq!(group["class"], "ubsan:add-overflow", "{group}");
    let frame = group["frame"].as_str().unwrap();
    assert!(frame.starts_with("sum"), "{group}");
    for (program, status) in [
        ("plain", "cannot tell"),
        ("goes-on", "cannot tell"),
        ("same", "same"),
    ] {
        let check = desk.call(&format!("check out --json -- ./{program}"));
        let result = check.exits(1).json();
        assert_eq!(result["groups"][0]["status"], status, "{program}: {result}");
    }
    let words = format!(
        "export {} -o out --as c-test --to test.c",
        group["major"].as_str().unwrap()
    );
    desk.call(&words).exits(0);
    let mut compiler = desk.command("clang");
    let made = compiler.args(["-w", "-o", "test", "test.c"]).status();
    assert!(made.unwrap().success());
    // A build that goes on tells of the failed check on stderr, unless it is fixed.
    let fixed = CHECKED.replace("letter == 'o' ? 0x7fffffff : 1", "1");
    desk.write("fixed.c", fixed);
    let mut compiler = desk.command("clang");
    compiler.args(["-O1", "-fno-inline", "-o", "fixed", "fixed.c"]);
    let made = compiler.args(checks.split_whitespace()).status();
    assert!(made.unwrap().success());
    for (program, status) in [("checked", 1), ("plain", 2), ("goes-on", 1), ("fixed", 0)] {
        let mut test = desk.command(desk.file("test"));
        let ended = test.arg(desk.file(program)).status().unwrap();
        assert_eq!(ended.code(), Some(status), "{program}");
    }
}

#[test]
#[cfg(target_arch = "x86_64")]
fn a_build_without_the_checks_that_trap_is_no_fix() {
    let desk = Desk::new();
    let trapping = "-fsanitize=signed-integer-overflow -fsanitize-trap=undefined";
    if build(&desk, "clang", "checked", trapping).is_none() {
        return;
    }
    build(&desk, "clang", "plain", "");
    desk.write("overflow", "o");
    desk.call("triage overflow -o out -- ./checked").exits(1);
    let result = desk.call("check out --json -- ./plain").exits(1).json();
    let group = &result["groups"][0];
    assert_eq!(group["status"], "cannot tell", "{group}");
    let why = group["why"].as_str().unwrap();
    assert!(why.contains("trap instruction"), "{why}");
    let major = group["major"].as_str().unwrap();
    let words = format!("export {major} -o out --as c-test --to test.c");
    desk.call(&words).exits(0);
    let mut compiler = desk.command("clang");
    let made = compiler.args(["-w", "-o", "test", "test.c"]).status();
    assert!(made.unwrap().success());
    for (program, code) in [("plain", 2), ("checked", 1)] {
        let ended = desk
            .command(desk.file("test"))
            .arg(desk.file(program))
            .status();
        assert_eq!(ended.unwrap().code(), Some(code), "{program}");
    }
}

#[test]
#[cfg(target_arch = "x86_64")]
fn a_function_without_its_trap_is_no_fix_and_one_that_keeps_one_may_be() {
    let desk = Desk::new();
    if build(&desk, "cc", "traps", "-DTRAPS").is_none() {
        return;
    }
    build(&desk, "cc", "plain", "");
    build(&desk, "cc", "kept", "-DKEPT");
    desk.write("letter", "t");
    desk.call("triage letter -o out -- ./traps").exits(1);
    for (program, status, code) in [("plain", "cannot tell", 1), ("kept", "fixed", 0)] {
        let call = desk.call(&format!("check out --json -- ./{program}"));
        let result = call.exits(code).json();
        assert_eq!(result["groups"][0]["status"], status, "{result}");
    }
}

#[test]
fn a_program_that_the_kernel_kills_as_it_starts_is_not_run() {
    let desk = Desk::new();
    if build(&desk, "cc", "traps", "-DTRAPS -g").is_none() {
        return;
    }
    desk.write("letter", "t");
    desk.call("triage letter -o out -- ./traps").exits(1);
    let part = desk.write("part", &desk.read("traps")[..5000]);
    std::fs::set_permissions(part, std::fs::Permissions::from_mode(0o755)).unwrap();
    for words in [
        "check out -- ./part",
        "triage letter -o other -- ./part",
        "run --runs 10 -o another -- ./part",
        "min letter -- ./part",
    ] {
        let said = desk.call(words).exits(3);
        assert!(said.err.contains("incomplete"), "{words}: {}", said.err);
    }
}
