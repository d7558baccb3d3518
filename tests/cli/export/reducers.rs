//! `--as script` and `--as creduce`, as other reducers call them.

use std::process::{Command, Stdio};

use crate::ddfuzz::Desk;
use crate::needs;

/// A desk with a crash of a C program in `ddfuzz-out`, its input copied as `minimized`, and its
/// interestingness test of this form in `test.sh`.
fn desk(form: &str) -> Desk {
    let desk = Desk::new();
    desk.compile("tests/cli/programs/two_bugs.c", "two_bugs");
    desk.write("crash", "int k = 2;\n int more;\n");
    let words = "triage crash -o ddfuzz-out --json -- ./two_bugs";
    let result = desk.call(words).exits(1).json();
    let major = result["groups"][0]["major"].as_str().unwrap();
    // Also what was never minimized has a name there.
    let words = format!("export {major} --as {form} --to test.sh");
    desk.call(&words).exits(0);
    std::fs::copy(desk.file("crash"), desk.file("original")).unwrap();
    desk
}

fn status(command: &mut Command) -> Option<i32> {
    command.stdout(Stdio::null()).status().unwrap().code()
}

#[test]
fn a_script_takes_its_input_in_each_way_that_reducers_have() {
    let desk = desk("script");
    desk.write("healthy", "nothing");
    let stdin = |name: &str| std::fs::File::open(desk.file(name)).unwrap();
    // shrinkray: by its argument, on stdin; lithium: the same argument, behind others of its own.
    let mut by_argument = desk.command(desk.file("test.sh"));
    assert_eq!(status(by_argument.arg(desk.file("crash"))), Some(0));
    let mut by_argument = desk.command(desk.file("test.sh"));
    assert_eq!(status(by_argument.arg("healthy")), Some(1));
    let elsewhere = desk.file("elsewhere");
    std::fs::create_dir(&elsewhere).unwrap();
    for (name, expected) in [("crash", 0), ("healthy", 1)] {
        let mut on_stdin = desk.command(desk.file("test.sh"));
        on_stdin.current_dir(&elsewhere).stdin(stdin(name));
        assert_eq!(status(&mut on_stdin), Some(expected), "{name}");
    }
}

#[test]
fn creduce_and_cvise_have_the_file_in_the_current_directory() {
    let desk = desk("creduce");
    assert_eq!(status(&mut desk.command(desk.file("test.sh"))), Some(0));
    desk.write("original", "nothing");
    assert_eq!(status(&mut desk.command(desk.file("test.sh"))), Some(1));
    std::fs::remove_file(desk.file("original")).unwrap();
    let mut missing = desk.command(desk.file("test.sh"));
    missing.stderr(Stdio::null());
    assert_eq!(status(&mut missing), Some(125));
}

#[test]
fn cvise_reduces_by_an_exported_test() {
    let Some(cvise) = needs::program("cvise") else {
        return;
    };
    let desk = desk("creduce");
    let output = desk
        .command(cvise)
        .args(["--n", "1", "--not-c", "--no-cache", "./test.sh", "original"])
        .output()
        .unwrap();
    let said = [output.stdout, output.stderr].concat();
    let said = String::from_utf8_lossy(&said).into_owned();
    assert!(output.status.success(), "{said}");
    let reduced = desk.read("original");
    assert!(reduced.len() < desk.read("crash").len(), "{said}");
    assert!(reduced.contains(&b'k'), "{said}");
    desk.write("reduced", &reduced);
    let again = "triage reduced --json --against ddfuzz-out -- ./two_bugs";
    desk.call(again).exits(4);
}
