//! What people see.

use std::io::Read;
use std::process::Stdio;

use crate::ddfuzz::Desk;

#[test]
fn every_command_has_a_help_with_an_example() {
    let desk = Desk::new();
    let commands = [
        "run",
        "min",
        "triage",
        "watch",
        "check",
        "log",
        "log show",
        "log replay",
        "log verify",
        "show",
    ];
    for command in commands.into_iter().chain(["merge", ""]) {
        let said = desk.call(&format!("{command} --help")).exits(0);
        assert!(
            said.out.contains("Example:\n  ddfuzz "),
            "{command}: {}",
            said.out
        );
        for option in ["--json", "--quiet", "--verbose", "--color"] {
            assert!(said.out.contains(option), "{command}: {option}");
        }
    }
}

#[test]
fn the_help_names_each_exit_code() {
    let said = Desk::new().call("--help").exits(0);
    let (_, codes) = said.out.split_once("Exit codes: ").expect(&said.out);
    // However the lines are broken.
    let codes = codes.split_whitespace().collect::<Vec<_>>().join(" ");
    let numbers: Vec<_> = codes
        .split("; ")
        .map(|one| one.split(' ').next().unwrap())
        .collect();
    assert_eq!(numbers, ["0", "1", "2", "3", "4", "70", "130"]);
}

#[test]
fn one_is_not_spoken_of_in_the_plural() {
    let desk = Desk::new();
    let said = desk
        .call("run --target crtplot --runs 60 --max-len 500 --seed 1 -o out")
        .exits(1);
    assert!(
        said.out.contains(": 1 crash group (1 new); results in"),
        "{}",
        said.out
    );
    assert!(said.out.contains("→ 1 byte  1-minimal"), "{}", said.out);
    // Nothing is told twice: the minimization in a line, the group in the table.
    assert_eq!(said.err.matches("minimized t=").count(), 1, "{}", said.err);
    assert_eq!(said.out.matches("1-minimal").count(), 1, "{}", said.out);
    assert!(!said.err.contains("error"), "{}", said.err);
    let merged = desk.call("merge out -o all").exits(0);
    assert!(merged.out.starts_with("1 crash group in "));
    // Hangs are groups, too.
    desk.call("run --target ul --runs 300 --max-len 2000 --seed 7 --minimize off -o other")
        .exits(1);
    let both = desk.call("merge out other -o both").exits(0).out;
    let kinds = ["hangs", "oom", "flaky"];
    let has = |kind: &&&str| {
        desk.file(&format!("both/{kind}"))
            .read_dir()
            .is_ok_and(|mut all| all.next().is_some())
    };
    assert_eq!(
        kinds.iter().filter(has).count(),
        both.matches(", ").count(),
        "{both}"
    );
    let nothing = desk
        .call("run --target crtplot --runs 1 --max-len 0 -o empty")
        .exits(0);
    assert!(nothing.out.starts_with("1 run in "), "{}", nothing.out);
}

#[test]
fn a_reader_that_leaves_early_does_no_harm() {
    let desk = Desk::new();
    let words = "run --target crtplot --runs 300 --max-len 500 --seed 1 -o out";
    let mut child = desk
        .command(env!("CARGO_BIN_EXE_ddfuzz"))
        .args(words.split(' '))
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    let mut err = String::new();
    child
        .stderr
        .take()
        .unwrap()
        .read_to_string(&mut err)
        .unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(1), "{err}");
    assert!(!err.contains("error"), "{err}");
    let shown = desk.call("show --json out").exits(0).json();
    assert_eq!(shown["groups"][0]["claim"], "1-minimal");
}

#[test]
fn quiet_and_json_keep_the_progress_away() {
    let desk = Desk::new();
    let words = "run --target crtplot --runs 60 --max-len 500 --seed 1";
    let quiet = desk.call(&format!("{words} -q -o quiet")).exits(1);
    assert!(quiet.err.is_empty());
    assert!(!quiet.out.contains("reproduce.sh"), "{}", quiet.out);
    let json = desk.call(&format!("{words} --json -o json")).exits(1);
    json.json();
    assert!(json.err.contains("minimized t="));
    let verbose = desk.call(&format!("{words} -v -o verbose")).exits(1);
    assert!(verbose.err.contains("seed 1") && verbose.err.contains("executed by harness"));
}

#[test]
fn errors_have_colour_only_where_it_is_wanted() {
    let desk = Desk::new();
    let plain = desk.call("show missing").exits(2);
    assert!(plain.err.starts_with("error: "));
    let red = desk.call("show missing --color always").exits(2);
    assert!(red.err.starts_with("\u{1b}["));
}

#[test]
fn a_result_that_does_not_fit_on_the_disk_is_an_error_message() {
    let desk = Desk::new();
    let mut call = desk.command(env!("CARGO_BIN_EXE_ddfuzz"));
    let full = std::fs::File::options().write(true).open("/dev/full");
    let said = call
        .args(["run", "--json"])
        .stdout(full.unwrap())
        .output()
        .unwrap();
    let err = String::from_utf8(said.stderr).unwrap();
    assert!(err.starts_with("error: writing the result"), "{err}");
    assert_eq!(said.status.code(), Some(2), "{err}");
}

#[test]
fn a_minimized_input_that_stdout_does_not_take_stays_in_its_file() {
    let desk = Desk::new();
    desk.write("crash", "xxxxxt t");
    let mut call = desk.command(env!("CARGO_BIN_EXE_ddfuzz"));
    call.args(["min", "crash", "-o", "-", "--target", "crtplot"]);
    let full = std::fs::File::options().write(true).open("/dev/full");
    let said = call.stdout(full.unwrap()).output().unwrap();
    let err = String::from_utf8(said.stderr).unwrap();
    assert_eq!(said.status.code(), Some(2), "{err}");
    let (_, file) = err.split_once("the result is in ").expect(&err);
    let kept = std::fs::read(desk.path().join(file.lines().next().unwrap())).unwrap();
    assert!(!kept.is_empty());
}

#[test]
fn two_reports_need_two_files() {
    let desk = Desk::new();
    desk.write("crash", "a t");
    desk.call("triage crash -o out --target crtplot").exits(1);
    let error = desk
        .call("show out --markdown report --sarif report --json")
        .exits(2)
        .json();
    let message = error["error"]["message"].as_str().unwrap();
    assert!(message.contains("two reports"), "{message}");
    // What is not written is not printed either.
    desk.write("foreign", "a letter");
    let said = desk.call("report out --json -o foreign").exits(2);
    assert_eq!(said.json()["error"]["kind"], "exists");
}
