//! Callbacks of `-fsanitize-coverage=trace-cmp`: the preload's, and the program's own.

use std::process::Command;

use ddfuzz::exec::Ended;

use crate::needs;
use crate::observe::{has, observer, target_of};
use crate::programs::{Compiled, compile, try_compile};

/// A switch whose table tells nothing of its cases: only callbacks do.
const INPUT: [u8; 4] = 80_000_u32.to_le_bytes();
const CASE: [u8; 4] = 70_003_u32.to_le_bytes();

#[track_caller]
fn tells_cases(program: &Compiled, own: bool, make: &[&str]) {
    let mut observer = observer(&target_of(program, "switch"));
    let callbacks = observer.sources().callbacks;
    assert_eq!(callbacks > 0, own, "{make:?}: {callbacks} callbacks");
    let (run, found) = observer.observe(&INPUT).unwrap();
    assert_eq!(run.ended, Ended::Exit(1), "{make:?}");
    assert!(has(&found, &INPUT, &CASE), "{make:?}: {found:?}");
    let (run, _) = observer.observe(&CASE).unwrap();
    assert_eq!(run.ended, Ended::Exit(0), "{make:?}");
}

const TRACED: &str = "-fsanitize-coverage=trace-cmp";

#[test]
fn without_callbacks_the_cases_of_a_switch_are_cannot_tell() {
    let program = compile("compares", &["-O2", "-pthread"]);
    let mut observer = observer(&target_of(&program, "switch"));
    let (_, found) = observer.observe(&INPUT).unwrap();
    assert!(!has(&found, &INPUT, &CASE), "{found:?}");
}

#[test]
fn callbacks_inside_the_program_are_listened_to_by_a_jump() {
    for make in [
        &[TRACED, "-DSTUBS", "-O0", "-pthread"][..],
        &[TRACED, "-DSTUBS", "-O2", "-pthread"],
        &[TRACED, "-DSTUBS", "-O2", "-pthread", "-no-pie"],
    ] {
        let program = compile("compares", make);
        tells_cases(&program, true, make);
    }
}

#[test]
fn callbacks_out_of_reach_of_a_jump_are_listened_to_by_a_breakpoint() {
    if !cfg!(target_arch = "x86_64") {
        return needs::missing("x86-64", "there are no breakpoints for other machines");
    }
    let close = [
        TRACED,
        "-DSTUBS",
        "-Os",
        "-falign-functions=1",
        "-fcf-protection=none",
    ];
    for make in [
        &close[..],
        &[TRACED, "-DSTUBS", "-O2", "-static"],
        &[TRACED, "-DSTUBS", "-O0", "-static"],
    ] {
        let Some(program) = try_compile("compares", make) else {
            return needs::missing("libc.a", "a static program cannot be linked");
        };
        tells_cases(&program, true, make);
    }
}

#[test]
fn callbacks_of_a_shared_library_are_taken_over() {
    let make = [TRACED, "-fsanitize=undefined", "-O1", "-pthread"];
    match try_compile("compares", &make) {
        Some(program) => tells_cases(&program, false, &make),
        None => needs::missing(
            "libubsan",
            "a program with gcc's sanitizer cannot be linked",
        ),
    }
}

#[test]
fn a_program_that_clang_made_is_observed() {
    let Some(clang) = needs::program("clang") else {
        return;
    };
    // Its runtime has such callbacks of its own, which a program may have in their stead. By
    // itself trace-cmp does nothing there.
    let makes: [&[&str]; 5] = [
        &["-O0"],
        &["-O2"],
        &["-O0", "-DSTUBS"],
        &["-O2", "-DSTUBS"],
        &["-O1", "-fsanitize=address"],
    ];
    let program = compile("compares", &["-pthread"]);
    let source = program.path.with_extension("c");
    for make in makes {
        let built = Command::new(&clang)
            .args([
                "-fsanitize-coverage=trace-pc-guard,trace-cmp",
                "-pthread",
                "-w",
                "-o",
            ])
            .args([&program.path, &source])
            .args(make)
            .status();
        if !built.unwrap().success() {
            return needs::missing("clang's runtime", "a program cannot be linked with it");
        }
        tells_cases(&program, true, make);
    }
}
