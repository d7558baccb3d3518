//! Inputs that can be read only once, and calls in pipes that are made again.

use std::process::{Command, Stdio};

use crate::ddfuzz::Desk;

/// The names in the directory that begin so, sorted.
fn named(desk: &Desk, begin: &str) -> Vec<String> {
    let entries = std::fs::read_dir(desk.path()).unwrap();
    let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let mut names: Vec<String> = names.filter(|name| name.starts_with(begin)).collect();
    names.sort();
    names
}

/// Calls `bash` with a line in which `ddfuzz` is ours; gives stdout and stderr.
fn shell(desk: &Desk, line: &str) -> (String, String) {
    let line = line.replace("ddfuzz", env!("CARGO_BIN_EXE_ddfuzz"));
    let mut command: Command = desk.command("bash");
    let output = command
        .args(["-c", &line])
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    let (out, said) = (text(output.stdout), text(output.stderr));
    assert!(output.status.success(), "{line}: {said}");
    (out, said)
}

fn desk() -> Desk {
    let desk = Desk::new();
    desk.script("test", "grep -q x");
    desk.write("in", "abxcd");
    desk
}

#[test]
fn what_comes_from_a_pipe_or_a_descriptor_is_saved() {
    for (line, begin) in [
        (
            "mkfifo pipe.txt; cat in >pipe.txt & ddfuzz min pipe.txt --test ./test",
            "pipe-",
        ),
        ("ddfuzz min /dev/stdin --test ./test <in", "stdin-"),
        ("ddfuzz min /proc/self/fd/0 --test ./test <in", "input-"),
        ("ddfuzz min <(cat in) --test ./test", "input-"),
    ] {
        let desk = desk();
        let (_, said) = shell(&desk, line);
        let names = named(&desk, begin);
        let [input, result, log] = &names[..] else {
            panic!("{line}: {names:?}: {said}");
        };
        assert_eq!(desk.read(input), b"abxcd", "{line}");
        assert_eq!(desk.read(result), b"x", "{line}");
        assert!(said.contains(&format!(" is in {input}")), "{line}: {said}");
        // As it is suggested.
        desk.call(&format!("log verify {log}")).exits(0);
    }
    // The ending of the name may tell the language.
    let desk = desk();
    shell(
        &desk,
        "mkfifo a.txt; cat in >a.txt & ddfuzz diff --empty a.txt --test ./test",
    );
    let inputs = named(&desk, "a-");
    assert!(inputs[0].ends_with(".txt"), "{inputs:?}");
}

#[test]
fn a_result_for_a_pipe_comes_from_the_log_when_it_is_asked_for_again() {
    let desk = desk();
    desk.script("counting", "echo >>$DESK/runs; grep -q x");
    for line in [
        "ddfuzz min in -o - --test ./counting",
        "cat in | ddfuzz min - -o - --test ./counting",
        "ddfuzz diff --empty in -o - --test ./counting",
        "ddfuzz max in -o - --test ./counting",
    ] {
        let first = shell(&desk, line).0;
        let runs = desk.read("runs").len();
        assert_eq!(shell(&desk, line).0, first, "{line}");
        // The input alone is run again.
        assert!(desk.read("runs").len() <= runs + 2, "{line}");
    }
    // The log of another minimization is not overwritten.
    let log = desk.read("in.min.log.jsonl");
    desk.write("in", "abxce");
    let said = desk.call("min in -o - --test ./counting").exits(2);
    assert!(said.err.contains("overwrite it with --force"), "{said:?}");
    assert_eq!(desk.read("in.min.log.jsonl"), log);
    let said = desk.call("min in -o - --force --test ./counting").exits(0);
    assert_eq!(said.out, "x");
    // What a log is to be written into, which the user has named, stays.
    desk.write("named", "precious");
    desk.call("min in -o - --log named --test ./counting")
        .exits(2);
    assert_eq!(desk.read("named"), b"precious");
}

#[test]
fn logs_and_their_inputs_come_from_stdin_and_pictures_go_to_stdout() {
    let desk = desk();
    shell(&desk, "ddfuzz min in --test ./test");
    for (line, out) in [
        ("ddfuzz log show - <in.min.log.jsonl", "1-minimal"),
        ("cat in.min.log.jsonl | ddfuzz log show -", "1-minimal"),
        ("cat in.min.log.jsonl | ddfuzz log verify -", "is verified"),
        (
            "cat in.min.log.jsonl | ddfuzz log replay -",
            "is consistent",
        ),
        (
            "cat in | ddfuzz log replay in.min.log.jsonl --input -",
            "is consistent",
        ),
        (
            "cat in | ddfuzz log verify in.min.log.jsonl --input -",
            "is verified",
        ),
        ("ddfuzz log show in.min.log.jsonl --svg -", "<svg"),
    ] {
        let (text, said) = shell(&desk, line);
        assert!(text.contains(out), "{line}: {text}{said}");
    }
    assert!(!desk.file("-").exists());
    let said = desk.call("log show in.min.log.jsonl --svg - --json");
    said.exits(2);
    desk.write("crash", "a t b\n");
    let said = desk.call("triage crash -o out --json --target crtplot");
    let major = said.exits(1).json()["groups"][0]["major"].clone();
    desk.write("known", major.as_str().unwrap());
    shell(&desk, "ddfuzz check out --known - <known");
}

#[test]
fn the_numbers_of_removals_are_grouped() {
    let desk = desk();
    desk.write("large", "xy".repeat(1000));
    let said = desk
        .call("min large --test ./test --budget-tests 0")
        .exits(0);
    assert!(said.out.contains("0 of 2,000 removals proved"), "{said:?}");
    let said = desk
        .call("max large --test ./test --budget-tests 0")
        .exits(0);
    assert!(said.out.contains("of 2,000 outcomes proved"), "{said:?}");
}
