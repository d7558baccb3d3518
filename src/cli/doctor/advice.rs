//! What would make a way work that does not.

use crate::exec::Way;
use crate::exec::facts::{Kind, Libc, TargetFacts};

/// What makes a function callable in-process.
const ENTRY: &str = "give it a function `target_main`: in Rust by `ddfuzz::target!`, in C as the \
                     book's page on writing targets shows";
/// What puts a fork server into a program.
const AFL: &str = "compile it with afl-clang-fast, of AFL++, which also gives its coverage";
/// What makes the entry of a libFuzzer binary known.
const SYMBOLS: &str = "keep its symbols: build it without `strip` and `-s`";
/// Where a program cannot be changed, nor need be.
const ENOUGH: &str = "nothing need be done: `command` runs it";

/// The advice; `None` where nothing is known that would help.
pub(super) fn of(way: Way, facts: &TargetFacts) -> Option<String> {
    match way {
        Way::Command | Way::Mock => machine_of(facts),
        Way::Inject => Some(inject(facts)),
        Way::Forkserver => Some(match facts.afl {
            true => "let it come to its own fork server: nothing before that may end it".to_owned(),
            false => AFL.to_owned(),
        }),
        Way::Harness if facts.libfuzzer && facts.stripped => Some(SYMBOLS.to_owned()),
        Way::Harness if facts.target_main || facts.libfuzzer => Some(inject(facts)),
        Way::Harness => Some(ENTRY.to_owned()),
    }
}

fn machine_of(facts: &TargetFacts) -> Option<String> {
    let advice = match facts.kind {
        Kind::Script => "see that the interpreter in its first line is there, and may be executed",
        Kind::Other => {
            "name a program of this machine, or a script with an interpreter (#!) in its first line"
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
        } => format!(
            "{ENOUGH}; to go faster, name the program whose bug it is instead of the script"
        ),
        TargetFacts {
            kind: Kind::Other, ..
        } => ENOUGH.to_owned(),
        TargetFacts { setuid: true, .. } => {
            format!("fuzz a copy, which has no such bit: cp {program} .")
        }
        TargetFacts { go: true, .. } => format!(
            "{ENOUGH}; a Go program has a start-up of its own, also where it is linked dynamically"
        ),
        TargetFacts { linker: None, .. } => {
            format!(
                "link it dynamically: without -static (of Rust: a target that ends with -gnu); else {ENOUGH}"
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
            "let it start threads and processes, and close descriptors, in or behind its main \
             function; else {ENOUGH}"
        ),
    }
}
