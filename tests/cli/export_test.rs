//! `ddfuzz min --export-test FILE`.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Stdio;

use crate::ddfuzz::Desk;

/// The exit status of the exported test, called in `dir` with these arguments, `stdin` on stdin.
fn ask(desk: &Desk, dir: &Path, args: &[&str], stdin: &str) -> Option<i32> {
    desk.write("stdin", stdin);
    let stdin = std::fs::File::open(desk.file("stdin")).unwrap();
    let mut command = desk.command(desk.file("test.sh"));
    command.args(args).current_dir(dir).stdin(stdin);
    command.stdout(Stdio::null()).status().unwrap().code()
}

#[test]
fn an_exported_test_tells_the_crash_from_another_and_from_none() {
    let desk = Desk::new();
    desk.compile("tests/cli/programs/two_bugs.c", "two_bugs");
    desk.write("crash", "even length, with a k.");
    let words = "min crash --json --export-test test.sh -- ./two_bugs";
    let record = desk.call(words).exits(0).json();
    let mode = std::fs::metadata(desk.file("test.sh"))
        .unwrap()
        .permissions()
        .mode();
    assert_eq!(mode & 0o111, 0o111);
    // The other bug is the one that the search slipped into.
    let slip = record["slips"][0]["file"].as_str().unwrap();
    std::fs::copy(slip, desk.file("other")).unwrap();
    desk.write("healthy", "nothing");
    for (input, status) in [
        ("crash", 0),
        ("crash.min", 0),
        ("other", 125),
        ("healthy", 1),
        ("missing", 125),
    ] {
        let said = ask(&desk, desk.path(), &[input], "");
        assert_eq!(said, Some(status), "{input}");
    }
    let elsewhere = desk.file("elsewhere");
    std::fs::create_dir(&elsewhere).unwrap();
    // On stdin, where there is no file of the input's name.
    let minimized = String::from_utf8(desk.read("crash.min")).unwrap();
    assert_eq!(ask(&desk, &elsewhere, &[], &minimized), Some(0));
    assert_eq!(ask(&desk, &elsewhere, &[], "nothing"), Some(1));
    std::fs::write(elsewhere.join("crash"), &minimized).unwrap();
    assert_eq!(ask(&desk, &elsewhere, &[], "nothing"), Some(0));
    // It follows the contract of `--test`, too.
    let again = "min crash --json --test ./test.sh -o again";
    desk.call(again).exits(0);
    assert_eq!(desk.read("again"), minimized.as_bytes());
    desk.is_left_clean();
}

#[test]
fn odd_arguments_and_variables_reach_the_program_as_they_were() {
    let desk = Desk::new();
    desk.compile("tests/cli/programs/odd_call.c", "odd call");
    desk.write("crash it's", "..k..");
    let words: [&[u8]; 10] = [
        b"crash it's",
        b"--export-test",
        b"test.sh",
        b"--env=ODD=a'b=c\n ",
        b"--",
        b"./odd call",
        b"it's \"$HOME\" `x` \\n",
        b"",
        b"-a\nb*",
        b"\xff\xfe",
    ];
    let words = words.map(OsStr::from_bytes);
    desk.call_with("min --json", &words).exits(0);
    assert_eq!(ask(&desk, desk.path(), &["crash it's.min"], ""), Some(0));
    assert_eq!(ask(&desk, desk.path(), &[], "j"), Some(0));
    let elsewhere = desk.file("elsewhere");
    std::fs::create_dir(&elsewhere).unwrap();
    assert_eq!(ask(&desk, &elsewhere, &[], "j"), Some(1));
}

#[test]
fn an_exported_test_overwrites_nothing() {
    let desk = Desk::new();
    desk.write("crash", "a t b");
    desk.write("test.sh", "precious");
    let words = "min crash --json --target crtplot --export-test test.sh";
    let error = desk.call(words).exits(2).json();
    assert_eq!(error["error"]["kind"], "exists");
    assert_eq!(desk.read("test.sh"), b"precious");
    assert!(!desk.file("crash.min").exists());
    for taken in ["crash", "./crash", "crash.min", "crash.min.log.jsonl"] {
        let words = format!("min crash --json --force --target crtplot --export-test {taken}");
        let error = desk.call(&words).exits(2).json();
        assert_eq!(error["error"]["kind"], "usage", "{taken}");
        assert_eq!(desk.read("crash"), b"a t b");
    }
    desk.call(&format!("{words} --force")).exits(0);
    assert_eq!(ask(&desk, desk.path(), &["crash.min"], ""), Some(0));
    // What is gone on with finds its test, and leaves it.
    desk.call(&format!("{words} --resume")).exits(0);
    // A test has no crash to be exported.
    let words = "min crash --json --test ./test.sh --export-test other.sh -o x";
    assert_eq!(desk.call(words).exits(2).json()["error"]["kind"], "usage");
}

#[test]
fn an_exported_test_says_what_it_lacks() {
    let desk = Desk::new();
    desk.write("crash", "a t b");
    let words = "min crash --target crtplot --export-test test.sh";
    desk.call(words).exits(0);
    // Neither the ddfuzz that wrote it nor any other is there.
    let text = String::from_utf8(desk.read("test.sh")).unwrap();
    let moved = text.replace(env!("CARGO_BIN_EXE_ddfuzz"), "/no/such/ddfuzz");
    assert_ne!(text, moved);
    desk.write("test.sh", moved);
    let output = desk
        .command(desk.file("test.sh"))
        .arg("crash")
        .env("PATH", "/no/such/path")
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(125));
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(said.contains("DDFUZZ="), "{said}");
    let named = desk
        .command(desk.file("test.sh"))
        .arg("crash")
        .env("DDFUZZ", env!("CARGO_BIN_EXE_ddfuzz"))
        .output()
        .unwrap();
    assert_eq!(named.status.code(), Some(0));
}
