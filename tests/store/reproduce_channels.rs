//! Reproducer scripts give the input in the way in which the target got it.

use std::fs;

use ddfuzz::exec::{Channel, Target, Terminal};
use ddfuzz::files::Base64;
use ddfuzz::store::Kind;

use crate::reproduce::{filed, run, sh};

/// The exit status of the script for `target` on `input`.
fn status(target: &Target, input: &[u8]) -> Option<i32> {
    let mut fixture = filed(Kind::Crash);
    fixture.minimize(input);
    let (_fixture, script) = fixture.script_kept(target);
    let output = run(&script);
    println!("{}", String::from_utf8_lossy(&output.stderr));
    output.status.code()
}

fn with_files(script: &str, channel: Channel, files: usize) -> Target {
    let mut target = sh(script);
    target.args.push("name".into());
    target.args.extend(vec!["@@".into(); files]);
    target.channel = channel;
    target
}

#[test]
fn a_file_gets_the_name_that_the_target_was_given() {
    let script = "[ \"${1##*/}\" = \"it's a.c\" ] && exit \"$(cat \"$1\")\"";
    let target = with_files(script, Channel::named("it's a.c"), 1);
    assert_eq!(status(&target, b"42"), Some(42));
}

#[test]
fn two_files_are_split_at_the_first_separator() {
    let script = "exit $(( $(wc -c <\"$1\") * 10 + $(wc -c <\"$2\") ))";
    let target = with_files(script, Channel::TwoFiles, 2);
    for (input, expected) in [
        (&b"abc\x1cde"[..], 32),
        (b"\x1c\x1c\0", 2),
        (b"abc", 30),
        (b"ab\x1c", 20),
        (b"", 0),
    ] {
        assert_eq!(status(&target, input), Some(expected), "{input:?}");
    }
}

/// A shell at a terminal, with this ending.
fn at_terminal(script: &str, ending: &[u8]) -> Target {
    let mut target = sh(script);
    target.channel = Channel::Terminal(Terminal {
        rows: 30,
        columns: 90,
        ending: Base64(ending.to_vec()),
    });
    target
}

#[test]
fn keys_are_typed_at_a_terminal_of_the_same_size() {
    let script = "[ -t 0 ] && [ -t 2 ] && [ \"$TERM\" = xterm ] && [ \"$(stty size)\" = '30 90' ] \
                  && read -r line && exit \"$line\"; exit 1";
    assert_eq!(status(&at_terminal(script, b"2\r"), b"4"), Some(42));
    let script = "read -r line; set -- $(stty size); exit $(( $1 + $2 ))";
    let resized = at_terminal(script, b"\r");
    assert_eq!(status(&resized, b"\x1b[8;7;50t"), Some(57));
}

#[test]
fn a_text_to_work_on_is_the_same_and_what_goes_on_is_ended() {
    let script = "cat \"$1\" | cksum >\"$0\"; while :; do sleep 0.1; done";
    let folder = tempfile::tempdir().unwrap();
    let sum = folder.path().join("sum");
    let mut target = at_terminal(script, b"");
    target.args.extend([sum.clone().into(), "@@".into()]);
    assert_eq!(status(&target, b"x"), Some(129), "it was hung up");
    let sample = folder.path().join("sample");
    fs::write(&sample, ddfuzz::exec::sample_text()).unwrap();
    let stdin = fs::File::open(&sample).unwrap();
    let expected = std::process::Command::new("cksum").stdin(stdin).output();
    assert_eq!(fs::read(&sum).unwrap(), expected.unwrap().stdout);
}

#[test]
fn keystrokes_are_cut_alike_by_scripts_and_runs() {
    // Each of these is one key: what is read at one time has the length that is expected.
    let keys = [
        "\x1b[1;5A",
        "\x1bOP",
        "\x1bx",
        "é",
        "🦀",
        "\x1b[M !!",
        "\x1bß",
        "\0",
    ];
    let script = format!(
        "stty raw -echo; for n in {}; do got=$(dd bs=100 count=1 2>/dev/null | wc -c); \
         [ \"$got\" -eq \"$n\" ] || exit \"$got\"; done; exit 77",
        keys.map(|key| key.len().to_string()).join(" ")
    );
    let target = at_terminal(&script, b"");
    assert_eq!(status(&target, keys.concat().as_bytes()), Some(77));
    let mut executor = ddfuzz::exec::start(&target, None, ddfuzz::exec::Freshness::Fresh)
        .unwrap()
        .executor;
    let run = executor.run(keys.concat().as_bytes()).unwrap();
    assert_eq!(run.ended, ddfuzz::exec::Ended::Exit(77));
}
