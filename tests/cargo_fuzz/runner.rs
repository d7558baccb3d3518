//! `ddfuzz-runner`: what cargo runs is run as it is, but for a libFuzzer that is called to fuzz.

use std::os::unix::process::ExitStatusExt;
use std::process::Command;

use crate::called::{Checkout, run};
use crate::ddfuzz::Desk;
use crate::projects::{TWO_PANICS, cargo_fuzz};

const RUNNER: &str = env!("CARGO_BIN_EXE_ddfuzz-runner");

#[test]
fn any_other_program_is_run_as_if_the_runner_were_not_there() {
    let desk = Desk::new();
    let program = desk.script(
        "program",
        "printf '%s|' \"$@\" \"$0\"; cat; echo said >&2; exit 7",
    );
    let words = ["a b", "", "-runs=3", "--help"];
    let with = |command: &mut Command| {
        let mut command =
            assert_cmd::Command::from_std(std::mem::replace(command, Command::new("")));
        command.args(words).write_stdin("input").output().unwrap()
    };
    let alone = with(&mut desk.command(&program));
    let mut by_runner = desk.command(RUNNER);
    by_runner.arg(&program);
    let same = with(&mut by_runner);
    assert_eq!((same.stdout, same.stderr), (alone.stdout, alone.stderr));
    assert_eq!(same.status.code(), Some(7));
    desk.is_left_clean();
}

#[test]
fn a_signal_and_a_program_that_is_not_there_end_as_they_do() {
    let desk = Desk::new();
    let program = desk.script("program", "kill -SEGV $$");
    let status = desk.command(RUNNER).arg(program).status().unwrap();
    assert_eq!(status.signal(), Some(11));
    let output = desk.command(RUNNER).arg("./nothing").output().unwrap();
    assert_eq!(output.status.code(), Some(127));
    assert!(String::from_utf8_lossy(&output.stderr).contains("./nothing"));
    let output = desk.command(RUNNER).output().unwrap();
    assert_eq!(output.status.code(), Some(2));
}

#[test]
fn a_plain_cargo_fuzz_run_ends_with_a_group_and_its_reproducer() {
    let Some(checkout) = Checkout::of(TWO_PANICS) else {
        return;
    };
    let folder = std::path::Path::new(RUNNER).parent().unwrap().to_owned();
    checkout.call("install-runner --yes").exits(0);
    let path = std::env::var_os("PATH").unwrap();
    let path = std::env::join_paths([folder].into_iter().chain(std::env::split_paths(&path)));
    let with_runner = |words: &str| {
        let mut command = cargo_fuzz(&checkout.dir);
        command.args(words.split_whitespace());
        command.env("PATH", path.as_ref().unwrap());
        run(command)
    };
    let said = with_runner("run parse -- -seed=1");
    assert_eq!(said.code, Some(1), "{said:?}");
    assert!(said.err.contains("exited with exit status: 77"), "{said:?}");
    assert!(said.err.contains("1-minimal"), "{said:?}");
    // The result is below all that cargo-fuzz prints, its error included.
    let (_, last) = said.err.split_once("Error: Fuzz target exited").unwrap();
    assert!(last.contains("1-minimal"), "{said:?}");
    assert!(
        last.contains("ddfuzz: 1 new crash group; next: ddfuzz show"),
        "{said:?}"
    );
    assert_eq!(said.err.matches("1-minimal").count(), 1, "{said:?}");
    let artifacts = || {
        let entries = std::fs::read_dir(checkout.dir.join("fuzz/artifacts/parse")).unwrap();
        let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
        let mut names: Vec<String> = names.collect();
        names.sort();
        names
    };
    let names = artifacts();
    assert_eq!(names.len(), 2, "{names:?}");
    assert!(names[0].starts_with("crash-") && names[1].starts_with("minimized-from-"));
    // On a single file, and where nothing is fuzzed, it is not there.
    let said = with_runner(&format!("run parse fuzz/artifacts/parse/{}", names[1]));
    assert!(said.err.contains("panicked at"), "{said:?}");
    let said = with_runner("cmin parse");
    assert_eq!(said.code, Some(0), "{said:?}");
    assert_eq!(artifacts(), names);
    // Within a bound it goes on after a crash. It starts from a table whose count is one byte away
    // from a crash: from an empty corpus, libFuzzer needs a number of runs that differs from call
    // to call.
    let near = checkout.dir.join("near");
    std::fs::create_dir(&near).unwrap();
    std::fs::write(near.join("count"), b"RC1\nN\x045123").unwrap();
    let said = with_runner(&format!(
        "run parse {} -- -runs=2000 -seed=2",
        near.display()
    ));
    assert!(
        said.err.matches("Test unit written").count() > 1,
        "{said:?}"
    );
    checkout.call("install-runner --remove --yes").exits(0);
    checkout.desk.is_left_clean();
}

#[test]
fn a_mistyped_crash_file_is_an_error_of_libfuzzer() {
    let desk = Desk::new();
    if TWO_PANICS.build(false, desk.path()).is_none() {
        return;
    }
    let mut mistyped = desk.command(RUNNER);
    mistyped.args(["./parse", "crash-typo"]);
    let said = run(mistyped);
    assert_ne!(said.code, Some(0), "{said:?}");
    assert!(!desk.file("crash-typo").exists());
    desk.is_left_clean();
}
