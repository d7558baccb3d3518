//! What users type first: a program without `--`, `-` for a file, values that help lists, and
//! mistakes that are told with what to type instead.

use std::fs::File;
use std::io::Read;
use std::process::Stdio;

use nix::pty::openpty;

use crate::ddfuzz::{Desk, Said};

/// Calls ddfuzz with these words and this stdin.
fn piped(desk: &Desk, words: &str, stdin: &[u8]) -> Said {
    let mut command = desk.command(env!("CARGO_BIN_EXE_ddfuzz"));
    command.args(words.split_whitespace());
    let mut command = assert_cmd::Command::from_std(command);
    let output = command.write_stdin(stdin).output().unwrap();
    Said {
        code: output.status.code(),
        out: String::from_utf8_lossy(&output.stdout).into_owned(),
        err: String::from_utf8_lossy(&output.stderr).into_owned(),
    }
}

/// A program that crashes on any input with a `t`.
fn crashing() -> Desk {
    let desk = Desk::new();
    desk.script("program", "if grep -q t \"$@\"; then kill -ABRT $$; fi");
    desk.write("crash", "a t b");
    desk
}

#[test]
fn a_program_without_the_two_dashes_is_understood() {
    let desk = crashing();
    desk.call("run --runs 3 --exec command ./program").exits(1);
    desk.call("min crash --json ./program").exits(0);
    assert_eq!(desk.read("crash.min"), b"t");
    // A value of an option that is named like the program is left alone.
    desk.call("min crash -o ./program.min ./program").exits(0);
    assert!(desk.file("program.min").is_file());
    // The arguments of the program are its own.
    desk.call("min crash --force ./program -s @@").exits(0);
}

#[test]
fn where_two_things_can_be_meant_a_hint_says_what_to_type() {
    let desk = crashing();
    let said = desk.call("run ./program --runs 3").exits(2);
    assert!(said.err.contains("-- ./program"), "{said:?}");
    let error = desk.call("run --json ./program --runs 3").exits(2).json();
    let hint = error["error"]["hint"].as_str().unwrap();
    assert!(hint.contains("-- ./program"), "{hint}");
    // Several inputs may be named before the program, so that nothing is left over.
    for (words, means) in [
        (
            "triage crash ./program @@",
            "ddfuzz triage crash -- ./program @@",
        ),
        ("watch in ./program", "ddfuzz watch in -- ./program"),
    ] {
        let said = desk.call(words).exits(2);
        assert!(said.err.contains(means), "{said:?}");
    }
    // What is no program stays a mistake.
    let said = desk.call("run rnu").exits(2);
    assert!(said.err.contains("unexpected argument 'rnu'"), "{said:?}");
}

#[test]
fn the_short_help_of_run_shows_what_people_need_first() {
    let desk = Desk::new();
    let short = desk.call("run -h").exits(0).out;
    let options = |help: &str| {
        help.lines()
            .filter(|line| line.trim_start().starts_with('-'))
            .count()
    };
    assert!(options(&short) <= 20, "{short}");
    for needed in [
        "--time",
        "--seeds",
        "--out",
        "--resume",
        "--target",
        "--timeout",
    ] {
        assert!(short.contains(needed), "{needed}: {short}");
    }
    let long = desk.call("run --help").exits(0).out;
    let at = |text: &str| long.find(text).unwrap_or_else(|| panic!("{text}: {long}"));
    // What few people need has headings of its own, behind those of everybody.
    assert!(at("Minimization of new groups:") < at("Several hosts and monitoring:"));
    assert!(at("Reports for CI:") < at("Programs that read a terminal"));
    assert!(at("--broker") > at("Several hosts and monitoring:"));
}

#[test]
fn values_that_an_option_takes_stand_in_its_help() {
    let desk = Desk::new();
    for command in ["run", "min", "watch", "revisit"] {
        let help = desk.call(&format!("{command} --help")).exits(0).out;
        for search in ddfuzz::minimize::SEARCHES {
            let summary = ddfuzz::minimize::search_summary(search);
            assert!(!summary.is_empty(), "{search}");
            assert!(help.contains(&format!("- {search}:")), "{command}: {help}");
        }
    }
    desk.write("crash", "t");
    let said = desk
        .call("min crash --search fulll --target crtplot")
        .exits(2);
    assert!(said.err.contains("'full'"), "{said:?}");
}

#[test]
fn a_memory_limit_in_which_no_program_starts_is_a_mistake() {
    let desk = crashing();
    let said = desk.call("min crash --memory 1 -- ./program").exits(2);
    assert!(said.err.contains("the minimum is 1M"), "{said:?}");
    // Also where a file sets it.
    desk.write("ddfuzz.toml", "[min]\nmemory = \"4K\"\n");
    let said = desk.call("min crash -- ./program").exits(2);
    assert!(said.err.contains("the minimum is 1M"), "{said:?}");
}

#[test]
fn a_dash_is_stdin_and_stdout() {
    let desk = crashing();
    let said = piped(&desk, "min - -o - -- ./program", b"a t b").exits(0);
    assert_eq!(said.out, "t");
    assert!(said.err.contains("1-minimal"), "{said:?}");
    // An earlier result of the user stays as it is.
    desk.write("crash", "a t b");
    desk.write("crash.min", "mine");
    let said = desk.call("min crash -o - -- ./program").exits(0);
    assert_eq!(
        (said.out.as_str(), &desk.read("crash.min")[..]),
        ("t", &b"mine"[..])
    );
    // The log knows its input: it is kept under the name of its content.
    let log = said
        .err
        .lines()
        .find_map(|line| line.strip_prefix("log    "));
    desk.call(&format!("log verify {}", log.unwrap())).exits(0);
    let said = desk.call(&format!("log replay {} -o -", log.unwrap()));
    assert_eq!(said.exits(0).out, "t");
    desk.write("good", "a b");
    let said = piped(&desk, "diff good - -o - -- ./program", b"a tb").exits(0);
    assert!(said.out.contains('t') && said.out.len() <= 4, "{said:?}");
    let said = piped(&desk, "max - -o - -- ./program", b"a t b").exits(0);
    assert_eq!(said.out, "a  b");
    let said = piped(&desk, "diff - - -- ./program", b"").exits(2);
    assert!(said.err.contains("both inputs are -"), "{said:?}");
    // Bytes and a JSON object do not fit into one stdout.
    let said = piped(&desk, "min - -o - --json -- ./program", b"t").exits(2);
    assert!(said.json()["error"]["message"].is_string());
    let said = piped(&desk, "gen -r - -o copy", b"some bytes").exits(0);
    assert_eq!(said.out, "some bytes");
    assert_eq!(desk.read("copy"), b"some bytes");
}

#[test]
fn a_report_on_stdout_has_it_for_itself() {
    let desk = Desk::new();
    desk.write("crash", "a t b");
    let words = "triage crash --target crtplot -o out --markdown";
    let said = desk.call(&format!("{words} -")).exits(1);
    assert!(said.out.starts_with("<!-- ddfuzz -->"), "{said:?}");
    assert!(!said.out.contains("KIND "), "{said:?}");
    assert!(said.err.contains("KIND "), "{said:?}");
    desk.call(&format!("{words} - --sarif -")).exits(2);
    let group = std::fs::read_dir(desk.file("out/crashes")).unwrap().next();
    let group = group.unwrap().unwrap().file_name();
    let words = format!("export {} -o out --as base64", group.display());
    let printed = desk.call(&words).exits(0).out;
    assert_eq!(desk.call(&format!("{words} --to -")).exits(0).out, printed);
}

/// What ddfuzz with these words writes to a terminal that is its standard output.
fn on_a_terminal(desk: &Desk, words: &str) -> (Option<i32>, Vec<u8>) {
    let ends = openpty(None, None).unwrap();
    let mut command = desk.command(env!("CARGO_BIN_EXE_ddfuzz"));
    command
        .args(words.split_whitespace())
        .stdin(Stdio::null())
        .stdout(Stdio::from(ends.slave))
        .stderr(Stdio::null());
    let mut child = command.spawn().unwrap();
    drop(command); // our copy of the program's end
    let mut said = Vec::new();
    // A terminal that nobody has open any more is an error.
    let _ = File::from(ends.master).read_to_end(&mut said);
    (child.wait().unwrap().code(), said)
}

#[test]
fn raw_bytes_are_not_written_to_a_terminal_unasked() {
    let desk = Desk::new();
    assert_eq!(
        on_a_terminal(&desk, "gen -0 -s 1 100"),
        (Some(2), Vec::new())
    );
    let (code, said) = on_a_terminal(&desk, "gen -p -s 1 100");
    assert_eq!((code, said.len()), (Some(0), 100));
    let (code, said) = on_a_terminal(&desk, "gen -0 -s 1 100 -o -");
    assert!(code == Some(0) && said.len() >= 100, "{code:?} {said:?}");
}

#[test]
fn an_output_directory_stays_out_of_the_repository_around_it() {
    let desk = Desk::new();
    let words = "run --target crtplot-fixed --runs 1 -o out";
    desk.call(words).exits(0);
    assert_eq!(desk.read("out/.gitignore"), b"*\n");
    // A user who wants it in the repository takes it away once.
    std::fs::remove_file(desk.file("out/.gitignore")).unwrap();
    desk.call(words).exits(0);
    assert!(!desk.file("out/.gitignore").exists());
    // One of the user's is kept, and does not make the directory another's.
    std::fs::create_dir(desk.file("own")).unwrap();
    desk.write("own/.gitignore", "bin\n");
    desk.call(&words.replace("out", "own")).exits(0);
    assert_eq!(desk.read("own/.gitignore"), b"bin\n");
}

#[test]
fn a_program_that_needs_more_memory_than_the_limit_is_said_to() {
    let desk = Desk::new();
    desk.compile("tests/cli/programs/needs_memory.c", "needs");
    desk.write("crash", "some bad input");
    let said = desk.call("min crash --memory 24M -- ./needs").exits(0);
    for told in ["24 MiB", "--memory"] {
        assert!(said.err.contains(told), "{said:?}");
    }
    assert!(!said.err.contains("never reads"), "{said:?}");
    assert!(!said.out.contains("any input"), "{said:?}");
    let said = desk
        .call("min crash -o enough --memory 128M -- ./needs")
        .exits(0);
    assert_eq!(desk.read("enough"), b"bad", "{said:?}");
}
