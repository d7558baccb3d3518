//! What would make a way work that does not.

use crate::exec::Way;
use crate::exec::facts::{Kind, Libc, TargetFacts};

/// What makes a function callable in-process.
const ENTRY: &str = "define a function `target_main` in it: in Rust with `ddfuzz::target!`, in C as the \
                     page on writing targets in the book shows";
/// What puts a fork server into a program.
const AFL: &str = "compile it with afl-clang-fast of AFL++; ddfuzz then also sees its coverage";
/// What makes the entry of a libFuzzer binary known.
const SYMBOLS: &str = "keep its symbols: build it without `strip` and `-s`";
/// Where a program cannot be changed, nor need be.
const ENOUGH: &str = "none needed: `command` runs it";

/// The advice; `None` where nothing is known that would help.
pub(super) fn of(way: Way, facts: &TargetFacts) -> Option<String> {
    match way {
        Way::Command | Way::Mock => machine_of(facts),
        Way::Inject => Some(inject(facts)),
        Way::Forkserver => Some(match facts.afl {
            true => {
                "make sure that the program does not exit before its fork server starts".to_owned()
            }
            false => AFL.to_owned(),
        }),
        Way::Harness if facts.libfuzzer && facts.stripped => Some(SYMBOLS.to_owned()),
        Way::Harness if facts.target_main || facts.libfuzzer => Some(inject(facts)),
        Way::Harness => Some(ENTRY.to_owned()),
    }
}

fn machine_of(facts: &TargetFacts) -> Option<String> {
    let advice = match facts.kind {
        Kind::Script => "make sure that the interpreter in its first line exists and is executable",
        Kind::Other => {
            "give a program for this machine, or a script whose first line names an interpreter (#!)"
        }
        Kind::Elf => return None,
    };
    Some(advice.to_owned())
}

fn inject(facts: &TargetFacts) -> String {
    let program = facts.program.display();
    match facts {
        TargetFacts {
            kind: Kind::Script, ..
        } => format!("{ENOUGH}; for more speed, fuzz the program that the script calls"),
        TargetFacts {
            kind: Kind::Other, ..
        } => ENOUGH.to_owned(),
        TargetFacts { setuid: true, .. } => {
            format!("fuzz a copy, which is not set-user-id: cp {program} .")
        }
        TargetFacts { go: true, .. } => format!(
            "{ENOUGH}; Go programs do not start through the C library, even if they are linked dynamically"
        ),
        TargetFacts { linker: None, .. } => {
            format!(
                "link it dynamically: without -static (Rust: for a target that ends with -gnu); else {ENOUGH}"
            )
        }
        TargetFacts {
            libc: Libc::Musl, ..
        } => format!("link it with glibc; else {ENOUGH}"),
        TargetFacts {
            libc: Libc::Other, ..
        } => ENOUGH.to_owned(),
        TargetFacts {
            libc: Libc::Glibc, ..
        } => format!(
            "do not start threads or processes, or close file descriptors, before the main function; \
             else {ENOUGH}"
        ),
    }
}
