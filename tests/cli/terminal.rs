//! Programs at a terminal: keystrokes are minimized like any input.

use std::path::Path;
use std::process::Command;

use ddfuzz::campaign::KeystrokesName;
use serde_json::Value;

use crate::ddfuzz::Desk;
use crate::needs;

/// Twice Enter, to leave a prompt and a message, and quit.
const LESS: &str = r"--terminal --ending \r\rq -- less @@";

fn keystrokes(name: &str) -> Vec<u8> {
    let name: KeystrokesName = name.parse().unwrap();
    let mut keys = Vec::new();
    name.write_into(&mut keys);
    keys
}

/// The program, if it is as Debian 12 has it; its crashes may be mended elsewhere.
fn installed(name: &str, version: &str) -> bool {
    if needs::program(name).is_none() {
        return false;
    }
    let said = Command::new("dpkg-query")
        .args(["-W", "-f=${Version}", name])
        .output();
    let found = said.map_or(String::new(), |said| {
        String::from_utf8_lossy(&said.stdout).into_owned()
    });
    if !found.starts_with(version) {
        needs::missing(&format!("{name}-{version}"), &format!("it is {found:?}"));
        return false;
    }
    true
}

fn shows_itself(desk: &Desk, result: &Value) {
    let minimized = result["output"].as_str().unwrap();
    let script = Path::new(minimized).with_file_name("reproduce.sh");
    let output = Command::new(script)
        .env("TMPDIR", desk.file("tmp"))
        .output()
        .unwrap();
    assert!(output.status.code().unwrap() > 128, "{output:?}");
}

#[test]
fn a_script_waits_for_a_hang_at_a_terminal() {
    if needs::program("script").is_none() {
        return;
    }
    let desk = Desk::new();
    let source = "#include <unistd.h>\nint main(void) { char c;\n\
                  while (read(0, &c, 1) == 1) if (c == 'h') for (;;); }\n";
    desk.write("spin.c", source);
    desk.compile(desk.file("spin.c").to_str().unwrap(), "spin");
    desk.write("keys", "h\n");
    let words = "triage keys -o out --json --timeout 100ms --terminal -- ./spin";
    let result = desk.call(words).exits(1).json();
    assert_eq!(result["groups"][0]["class"], "hang", "{result}");
    let scripts = desk
        .command("find")
        .args(["out/hangs", "-name", "reproduce.sh"])
        .output();
    let scripts = String::from_utf8(scripts.unwrap().stdout).unwrap();
    let output = desk.command(desk.file(scripts.trim())).output().unwrap();
    assert_eq!(
        output.status.code(),
        Some(128 + libc::SIGXCPU),
        "{output:?}"
    );
}

#[test]
fn less_falls_to_two_keys() {
    if !installed("less", "590") {
        return;
    }
    let desk = Desk::new();
    desk.write("keys", keystrokes("keys:000000000000002d:300"));
    let result = desk.call(&format!("min keys --json -o out/ {LESS}"));
    let result = result.exits(0).json();
    assert_eq!(result["claim"], "1-minimal", "{result}");
    assert_eq!(result["size_after"], 2, "{result}");
    assert_eq!(result["outcome"]["class"], "segv");
    let minimized = std::fs::read(result["output"].as_str().unwrap()).unwrap();
    assert_eq!(minimized, b"&[");
    let log = result["log"].as_str().unwrap();
    desk.call(&format!("log verify {log}")).exits(0);
    desk.call(&format!("log replay {log}")).exits(0);
    let shown = desk.call(&format!("log show {log}")).exits(0);
    assert!(shown.out.contains("bytes"), "{shown:?}");
    shows_itself(&desk, &result);
    desk.is_left_clean();
}

#[test]
fn nvi_crashes_on_five_keys() {
    if !installed("nvi", "1.81.6-17") {
        return;
    }
    let desk = Desk::new();
    desk.write("keys", keystrokes("keys:000000000000000d:5"));
    let words = "min keys --json --budget-tests 300 -o out/ --terminal -- nvi @@";
    let result = desk.call(words).exits(0).json();
    assert_eq!(result["outcome"]["class"], "abrt", "{result}");
    shows_itself(&desk, &result);
    desk.is_left_clean();
}

#[test]
fn groups_of_a_terminal_are_checked_and_exported_as_tests_of_ddfuzz() {
    let desk = Desk::new();
    let program = desk.compile("tests/cli/programs/at_terminal.c", "lines");
    desk.write("keys", b"abcxy\rz");
    let target = format!("--terminal=10x40 -- {}", program.display());
    let words = format!("triage keys --json -o out {target}");
    let result = desk.call(&words).exits(1).json();
    let major = result["groups"][0]["major"].as_str().unwrap().to_owned();
    // What a directory knows of its target it uses again.
    desk.call("check out").exits(1);
    desk.call(&format!("export {major} -o out --as script --to test.sh"))
        .exits(0);
    let test = Command::new(desk.file("test.sh"))
        .arg(desk.file("keys"))
        .env("TMPDIR", desk.file("tmp"))
        .output()
        .unwrap();
    assert_eq!(test.status.code(), Some(0), "{test:?}");
    let refused = desk
        .call(&format!("export {major} -o out --as c-test"))
        .exits(2);
    assert!(refused.err.contains("at a terminal"), "{refused:?}");
    desk.is_left_clean();
}

#[test]
fn a_name_and_two_files_reach_the_target() {
    let desk = Desk::new();
    let named = desk.script("named", "case $1 in */t.c) kill -SEGV $$ ;; esac");
    let both = desk.script("both", "[ -s \"$1\" ] && [ -s \"$2\" ] && kill -SEGV $$");
    desk.write("input", b"some text\x1cand more");
    for (options, program, size) in [("--file-name t.c", named, 0), ("--two-files", both, 3)] {
        let program = program.display();
        let words = format!("min input --json --force {options} -- {program} @@ @@");
        let result = desk.call(&words).exits(0).json();
        assert_eq!(result["size_after"], size, "{result}");
    }
}

#[test]
fn channels_that_do_not_fit_are_usage_errors() {
    let desk = Desk::new();
    desk.write("input", b"a");
    for (words, said) in [
        ("--terminal --two-files -- cat @@ @@", "--two-files"),
        (
            "--terminal --exec harness -- cat",
            "--terminal does not work",
        ),
        ("--terminal=0x80 -- cat", "ROWSxCOLUMNS"),
        (r"--terminal --ending \q -- cat", "escape"),
        (r"--ending \r -- cat", "--terminal"),
        ("--file-name a/b -- cat @@", "plain file name"),
        ("--file-name a -- cat", "@@"),
        ("--two-files -- cat @@", "@@"),
    ] {
        let refused = desk.call(&format!("triage input {words}")).exits(2);
        assert!(refused.err.contains(said), "{words}: {refused:?}");
    }
}
