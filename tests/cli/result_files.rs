//! Result files and logs of `min`, `max` and `diff`: nothing of the user's is overwritten, and a log
//! goes on only where it began.

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;
use std::process::Command;

use crate::ddfuzz::Desk;

/// A desk with the program `./letters`, which needs X and Y, and an input that crashes it.
fn desk() -> Desk {
    let desk = Desk::new();
    desk.compile("tests/cli/programs/two_letters.c", "letters");
    desk.write("crash", "aaaXbbbbbbYccc");
    desk
}

/// The message of the error with which a call of `ddfuzz` refuses.
fn refusal(desk: &Desk, words: &str) -> String {
    let error = desk.call(&format!("{words} --json -- ./letters"));
    let error = error.exits(2).json();
    error["error"]["message"].as_str().unwrap().to_owned()
}

#[test]
fn what_is_no_regular_file_stays() {
    let desk = desk();
    let made = Command::new("mkfifo").arg(desk.file("pipe")).status();
    assert!(made.unwrap().success());
    for words in ["min crash -o pipe --force", "min crash --log pipe --force"] {
        let message = refusal(&desk, words);
        assert!(message.contains("not a regular file"), "{message}");
        assert!(!desk.file("pipe").is_file() && desk.file("pipe").exists());
    }
}

#[test]
fn the_test_and_the_program_are_never_overwritten() {
    let desk = desk();
    desk.write("good", "aaa");
    let test = desk.write("test.sh", "#!/bin/sh\ngrep -q X\n");
    std::fs::set_permissions(&test, Permissions::from_mode(0o755)).unwrap();
    let kept = ["letters", "test.sh"].map(|name| desk.read(name));
    for words in [
        "min crash -o letters --force",
        "min crash --log letters --force",
        "max crash -o letters --force",
        "diff good crash --log letters --force",
    ] {
        let message = refusal(&desk, words);
        assert!(message.contains("only read"), "{words}: {message}");
    }
    for words in [
        "min crash --test ./test.sh -o test.sh --force",
        "diff good crash --test ./test.sh --log test.sh --force",
    ] {
        let error = desk.call(&format!("{words} --json")).exits(2).json();
        let message = error["error"]["message"].as_str().unwrap();
        assert!(message.contains("only read"), "{words}: {message}");
    }
    assert_eq!(kept, ["letters", "test.sh"].map(|name| desk.read(name)));
}

#[test]
fn what_no_log_tells_of_is_not_taken_for_an_earlier_result() {
    let desk = desk();
    desk.write("kept", "precious\n");
    let message = refusal(&desk, "min crash -o kept --log new.log --resume");
    assert!(message.contains("exists already"), "{message}");
    desk.write("notes", "notes without a line end");
    let message = refusal(&desk, "min crash -o new --log notes --resume");
    assert!(
        message.contains("not a line of a minimization log"),
        "{message}"
    );
    assert_eq!(desk.read("kept"), b"precious\n");
    assert_eq!(desk.read("notes"), b"notes without a line end");
}

#[test]
fn the_result_and_the_log_are_two_files() {
    let desk = desk();
    let message = refusal(&desk, "min crash -o both --log ./both");
    assert!(
        message.contains("both the result file and the log"),
        "{message}"
    );
    assert!(!desk.file("both").exists());
}

#[test]
fn a_log_has_one_writer() {
    let desk = desk();
    desk.call("min crash -o small --budget-tests 4 -- ./letters")
        .exits(0);
    let log = std::fs::File::open(desk.file("small.log.jsonl")).unwrap();
    log.try_lock().unwrap();
    let message = refusal(&desk, "min crash -o small --resume");
    assert!(
        message.contains("another process is writing it"),
        "{message}"
    );
    drop(log);
    desk.call("min crash -o small --resume -- ./letters")
        .exits(0);
    assert_eq!(desk.read("small"), b"XY");
}

#[test]
fn tests_of_another_build_or_within_other_limits_prove_nothing() {
    let desk = desk();
    let begin = "min crash -o small --exec command --budget-tests 16 -- ./letters";
    desk.call(begin).exits(0);
    let message = refusal(
        &desk,
        "min crash -o small --exec command --memory 200M --resume",
    );
    assert!(message.contains("another limit"), "{message}");
    desk.call("min crash -o out/ --exec command --budget-tests 16 -- ./letters")
        .exits(0);
    // The same code, which needs an X only.
    let mut program = desk.read("letters");
    let needs = b"the letters X and Y";
    let at = program.windows(needs.len()).position(|text| text == needs);
    program[at.unwrap() + needs.len() - 1] = b'X';
    let other = desk.write("other", program);
    std::fs::set_permissions(&other, Permissions::from_mode(0o755)).unwrap();
    desk.put(&other, "letters");
    let message = refusal(&desk, "min crash -o small --exec command --resume");
    assert!(message.contains("another build"), "{message}");
    let record = desk.call("min crash -o out/ --exec command --json -- ./letters");
    let record = record.exits(0).json();
    assert_eq!(record["size_after"], 1, "{record}");
}

#[test]
fn a_proven_result_in_a_directory_stays_whatever_the_limits() {
    let desk = desk();
    let call = |words: &str| {
        let words = format!("min crash -o out/ --exec command --json {words} -- ./letters");
        let record = desk.call(&words).exits(0).json();
        let facts = ["size_after", "claim", "tests"].map(|name| record[name].clone());
        assert_eq!(facts[0], 2, "{record}");
        facts
    };
    let proven = call("");
    assert_eq!(call("--timeout 3s --budget-tests 1"), proven);
    assert_eq!(call("--memory 200M"), proven);
}

#[test]
fn a_hang_that_is_told_apart_is_filed_as_one() {
    let desk = Desk::new();
    desk.write("good", "xx");
    desk.write("hang", "xh");
    let program = "x=$(cat); case $x in *h*) while :; do :; done;; esac";
    let words = ["--", "sh", "-c", program].map(std::ffi::OsStr::new);
    desk.call_with("diff good hang -o out/ --timeout 50ms", &words)
        .exits(0);
    assert!(desk.file("out/hangs").is_dir() && !desk.file("out/crashes").exists());
}

#[test]
fn the_log_of_another_result_does_not_make_a_file_ours() {
    let desk = desk();
    desk.write("precious", "aXY");
    // The logs of minimizing it, and of one whose name begins like its own.
    desk.call("min precious -- ./letters").exits(0);
    desk.call("min crash -o precious0 -- ./letters").exits(0);
    let message = refusal(&desk, "min crash -o precious --resume");
    assert!(message.contains("precious exists"), "{message}");
    assert_eq!(desk.read("precious"), b"aXY");
}

#[test]
fn a_symbolic_link_that_leads_nowhere_is_not_replaced() {
    let desk = desk();
    std::os::unix::fs::symlink("nowhere", desk.file("link")).unwrap();
    for words in ["min crash -o link", "min crash --log link"] {
        let message = refusal(&desk, words);
        assert!(message.contains("exists already"), "{words}: {message}");
    }
    assert!(desk.file("link").is_symlink());
    desk.call("min crash -o link --force -- ./letters").exits(0);
    assert_eq!(desk.read("link"), b"XY");
}

#[test]
fn a_result_for_stdout_is_not_written_beside_the_input() {
    let desk = desk();
    std::fs::create_dir(desk.file("in")).unwrap();
    let input = desk.write("in/crash", "aaaXbbbbbbYccc");
    let folder = input.parent().unwrap().display();
    // It fails once there is another file beside the input.
    desk.script(
        "alone.sh",
        &format!("[ \"$(ls {folder})\" = crash ] && grep -q X \"$1\""),
    );
    let said = desk.call("min in/crash --test ./alone.sh --log log.jsonl -o -");
    assert_eq!(said.exits(0).out, "X");
    assert!(!desk.file("log.jsonl.ddfuzz-stdout").exists());
}

#[test]
fn a_name_that_is_too_long_is_said_to_be_so() {
    let desk = desk();
    desk.script("test.sh", "grep -q X \"$1\"");
    let name = "n".repeat(250);
    desk.write(&name, "aXa");
    for command in ["min", "max", "diff --empty"] {
        let words = format!("{command} {name} --test ./test.sh --json");
        let error = desk.call(&words).exits(2).json();
        let hint = error["error"]["hint"].as_str().unwrap_or_default();
        assert!(hint.contains("shorter name"), "{command}: {error}");
    }
}

#[test]
fn a_program_that_kills_its_parent_is_not_said_to_need_the_way_that_it_has() {
    let desk = desk();
    desk.script("kills", "kill -9 $PPID");
    let words = "min crash --exec command --json -- ./kills";
    let error = desk.call(words).exits(3).json();
    let hint = error["error"]["hint"].as_str().unwrap();
    assert!(!hint.contains("--exec command"), "{error}");
}
