//! Checks of a target for `ddfuzz doctor`, and advice how to make a way of execution work.

use crate::cli::behaviour::Behaviour;
use crate::exec::facts::{Kind, Libc, TargetFacts};
use crate::exec::machine::{About, Check};
use crate::exec::{Channel, Program, Target, Terminal, Way};

/// Makes all checks of a target for `ddfuzz doctor`, from facts about its program and from its
/// behaviour `seen` in trial runs. The checks of ELF files are left out for other programs, such as
/// scripts.
pub(super) fn checks(target: &Target, facts: &TargetFacts, seen: &Behaviour) -> Vec<Check> {
    let mut checks = vec![
        kind(facts),
        privileges(facts),
        user(facts),
        input(target, facts, seen),
    ];
    checks.extend(
        seen.constant_crash()
            .map(|frail| bad("crashes", frail.seen, frail.fix)),
    );
    if facts.kind == Kind::Elf {
        checks.extend([
            symbols(facts),
            instrumentation(target, facts),
            terminal(target, facts, seen),
        ]);
        checks.push(processes(facts));
    }
    checks
}

fn good(name: &'static str, detail: impl Into<String>) -> Check {
    Check::passed(About::Target, name, detail)
}

fn bad(name: &'static str, detail: impl Into<String>, fix: impl Into<String>) -> Check {
    Check::failed(About::Target, name, detail, fix)
}

fn kind(facts: &TargetFacts) -> Check {
    let pie = match facts.position_independent {
        true => "position-independent",
        false => "at a fixed address",
    };
    let go = if facts.go { " Go" } else { "" };
    match (facts.kind, &facts.linker) {
        (Kind::Script, _) => {
            let interpreter = facts.script_of.as_deref().unwrap_or_default();
            good("program", format!("a script, run by {interpreter}"))
        }
        (Kind::Other, _) => bad(
            "program",
            "neither a 64-bit ELF program of this machine nor a script",
            "give a program for this machine, or a script whose first line names an interpreter (#!)",
        ),
        (Kind::Elf, None) => bad(
            "program",
            format!("a statically linked{go} program, {pie}: nothing can be preloaded into it"),
            "link it dynamically for `inject`, or let it run by `command`, which takes longer",
        ),
        (Kind::Elf, Some(linker)) if facts.libc == Libc::Glibc => good(
            "program",
            format!("a dynamically linked{go} program (glibc), {pie}, loaded by {linker}"),
        ),
        (Kind::Elf, Some(linker)) => bad(
            "program",
            format!(
                "a dynamically linked{go} program, {pie}, loaded by {linker}, but not started by glibc"
            ),
            "link it with glibc for `inject`, or let it run by `command`, which takes longer",
        ),
    }
}

fn privileges(facts: &TargetFacts) -> Check {
    match facts.setuid {
        true => bad(
            "setuid",
            "set-user-id or set-group-id: nothing can be preloaded into it, and it runs with the rights of another user",
            format!(
                "fuzz a copy, which is not set-user-id: cp {} .",
                facts.program.display()
            ),
        ),
        false => good("setuid", "neither set-user-id nor set-group-id"),
    }
}

fn user(facts: &TargetFacts) -> Check {
    match facts.as_root {
        true => bad(
            "runs-as",
            "as root, because the user nobody cannot access it or its directory",
            "put it where everybody may read and execute it, including all directories above (/usr/local/bin, /tmp)",
        ),
        false => good("runs-as", "a user without the rights of root"),
    }
}

fn input(target: &Target, facts: &TargetFacts, seen: &Behaviour) -> Check {
    let name = "input";
    if matches!(target.channel, Channel::Terminal(_)) {
        return good(name, "keys, typed on a pseudo-terminal");
    }
    if target.takes_file() {
        return good(name, "a file, whose path replaces @@");
    }
    if let Some(deaf) = seen.ignored_stdin(target) {
        return bad(name, deaf.seen, deaf.fix);
    }
    match seen.read {
        Some(read) => good(
            name,
            format!("on stdin; the program read {read} bytes of a short text"),
        ),
        None if facts.libfuzzer => good(
            name,
            "as an argument of `LLVMFuzzerTestOneInput`; as a file by libFuzzer's main",
        ),
        None if facts.target_main => good(name, "as an argument of `target_main`"),
        None => good(
            name,
            "on stdin; this machine cannot tell whether the program reads it",
        ),
    }
}

fn symbols(facts: &TargetFacts) -> Check {
    let name = "symbols";
    match (facts.stripped, facts.debug_info) {
        (false, true) => good(name, "present, with line numbers"),
        (false, false) => good(
            name,
            "present, without line numbers (compile with -g to have them)",
        ),
        (true, _) => bad(
            name,
            "stripped: crashes are grouped all the same, but shown without names of functions",
            "build it with -g, and without `strip` and `-s`",
        ),
    }
}

fn instrumentation(target: &Target, facts: &TargetFacts) -> Check {
    let mut found: Vec<String> = facts
        .sanitizers
        .iter()
        .map(|kind| format!("sanitizer {kind}"))
        .collect();
    for (is_there, what) in [
        (facts.target_main, "the entry function target_main"),
        (facts.libfuzzer, "libFuzzer"),
        (facts.afl, "AFL++"),
        (facts.counters, "coverage counters"),
    ] {
        if is_there {
            found.push(what.to_owned());
        }
    }
    let hint = match &target.program {
        Program::Path(_) if facts.target_main => {
            "; --exec harness calls the entry function in-process"
        }
        _ => "",
    };
    match found.is_empty() {
        true => good("instrumentation", "none"),
        false => good("instrumentation", format!("{}{hint}", found.join(", "))),
    }
}

/// Makes the check whether the target needs a terminal, by the terminal functions that its program
/// calls: `isatty` only asks whether there is one, all others need one.
fn terminal(target: &Target, facts: &TargetFacts, seen: &Behaviour) -> Check {
    let name = "terminal";
    if let Channel::Terminal(Terminal { rows, columns, .. }) = target.channel {
        return good(name, format!("a pseudo-terminal of {rows} x {columns}"));
    }
    let needs: Vec<&str> = facts
        .terminal_calls
        .iter()
        .copied()
        .filter(|call| *call != "isatty")
        .collect();
    let deaf = seen.read == Some(0) && !target.takes_file();
    match needs.is_empty() {
        false if deaf || seen.waits => bad(
            name,
            format!(
                "it may need one: it calls {}, and reads nothing of stdin",
                needs.join(", ")
            ),
            "look for an option that makes it work without a terminal (--batch, -n, TERM=dumb)",
        ),
        false => good(
            name,
            format!("it calls {}, but runs without one", needs.join(", ")),
        ),
        true if facts.is_static() => {
            good(name, "unknown, because the program is statically linked")
        }
        true if facts.terminal_calls.is_empty() => {
            good(name, "it does not ask for one itself (its libraries may)")
        }
        true => good(name, "it asks whether there is one (isatty)"),
    }
}

fn processes(facts: &TargetFacts) -> Check {
    let calls: Vec<&str> = [&facts.process_calls[..], &facts.thread_calls].concat();
    match calls.is_empty() {
        true if facts.is_static() => good(
            "starts",
            "unknown, because the program is statically linked",
        ),
        true => good(
            "starts",
            "no processes or threads itself (its libraries may)",
        ),
        false => good(
            "starts",
            format!(
                "it may start processes or threads ({}); they are killed at the end of each run",
                calls.join(", ")
            ),
        ),
    }
}

/// Advice for users: how to give a program an entry function that can be called in-process.
const ENTRY: &str = "define a function `target_main` in it: in Rust with `ddfuzz::target!`, in C as the \
                     page on writing targets in the book shows";
/// Advice for users: how to give a program a fork server.
const AFL: &str = "compile it with afl-clang-fast of AFL++; ddfuzz then also sees its coverage";
/// Advice for users: how to make the entry function of a libFuzzer binary visible to ddfuzz.
const SYMBOLS: &str = "keep its symbols: build it without `strip` and `-s`";
/// Text in place of advice if the program needs no change, because the way `command` can run it.
const ENOUGH: &str = "none needed: `command` runs it";

/// Returns advice on what would make the way of execution `way` work for the target; `None` if
/// there is none.
pub(super) fn advice_for(way: Way, facts: &TargetFacts) -> Option<String> {
    match way {
        Way::Command | Way::Mock => machine_of(facts),
        Way::Inject => Some(advice_for_inject(facts)),
        Way::Snapshot => Some(match facts.is_static() {
            true => advice_for_inject(facts),
            false => "none needed: `inject` forks each run of it".to_owned(),
        }),
        Way::Forkserver => Some(match facts.afl {
            true => {
                "make sure that the program does not exit before its fork server starts".to_owned()
            }
            false => AFL.to_owned(),
        }),
        Way::Harness if facts.libfuzzer && facts.stripped => Some(SYMBOLS.to_owned()),
        Way::Harness if facts.target_main || facts.libfuzzer => Some(advice_for_inject(facts)),
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

fn advice_for_inject(facts: &TargetFacts) -> String {
    let program = facts.program.display();
    match (facts.kind, facts.libc) {
        (Kind::Script, _) => {
            format!("{ENOUGH}; for more speed, fuzz the program that the script calls")
        }
        (Kind::Other, _) => ENOUGH.to_owned(),
        (Kind::Elf, _) if facts.setuid => {
            format!("fuzz a copy, which is not set-user-id: cp {program} .")
        }
        (Kind::Elf, _) if facts.go => format!(
            "{ENOUGH}; Go programs do not start through the C library, even if they are linked dynamically"
        ),
        (Kind::Elf, _) if facts.linker.is_none() => {
            format!(
                "link it dynamically: without -static (Rust: for a target that ends with -gnu); else {ENOUGH}"
            )
        }
        (Kind::Elf, Libc::Musl) => format!("link it with glibc; else {ENOUGH}"),
        (Kind::Elf, Libc::Other) => ENOUGH.to_owned(),
        (Kind::Elf, Libc::Glibc) => format!(
            "do not start threads or processes, or close file descriptors, before the main function; \
             else {ENOUGH}"
        ),
    }
}
