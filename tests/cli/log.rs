//! `ddfuzz log show|replay|verify`.

use crate::crashes;
use crate::ddfuzz::{Desk, compiled};

const LOG: &str = "crash.min.log.jsonl";

/// A desk with a minimized crash of `ul`.
fn minimized() -> Desk {
    let desk = Desk::new();
    desk.write("crash", crashes::for_ul());
    desk.call("min crash --search ddmin --target ul").exits(0);
    desk
}

#[test]
fn a_replay_rebuilds_the_result_without_the_target() {
    let desk = minimized();
    let rebuilt = desk
        .call(&format!("log replay --json {LOG} -o rebuilt"))
        .exits(0)
        .json();
    assert_eq!(desk.read("rebuilt"), desk.read("crash.min"));
    assert_eq!(rebuilt["size"], 517);
    assert_eq!(rebuilt["claim"], "1-minimal");
    // What stands there already is not overwritten.
    desk.call(&format!("log replay {LOG} -o rebuilt")).exits(2);
}

#[test]
fn the_log_of_a_campaigns_group_is_replayed_and_verified_in_its_folder() {
    let desk = Desk::new();
    let words = "run --json --target crtplot --runs 100 --max-len 1000 --seed 5 -o out";
    let result = desk.call(words).exits(1).json();
    let log = result["groups"][0]["log"].as_str().unwrap();
    desk.call(&format!("log replay {log} -o rebuilt")).exits(0);
    assert_eq!(desk.read("rebuilt"), b"t");
    desk.call(&format!("log verify {log}")).exits(0);
}

#[test]
fn a_log_with_one_byte_changed_is_refused() {
    let desk = minimized();
    let log = String::from_utf8(desk.read(LOG)).unwrap();
    let lines: Vec<&str> = log.lines().collect();
    let last = lines.len() - 1;
    let reduced = lines
        .iter()
        .position(|line| line.contains("\"FAIL\",\"source\""));
    let forged = |line: usize, key: &str, by: u8| {
        let mut bytes = log.clone().into_bytes();
        let begin: usize = lines[..line].iter().map(|line| line.len() + 1).sum();
        let at = begin + lines[line].find(key).unwrap() + key.len();
        assert_ne!(bytes[at], by);
        bytes[at] = by;
        bytes
    };
    let digit = |line: usize, key: &str| {
        let at = lines[line].find(key).unwrap() + key.len();
        if lines[line].as_bytes()[at] == b'0' {
            b'1'
        } else {
            b'0'
        }
    };
    let hash = "\"hash\":\"";
    let tests = (last / 2..last).find(|line| lines[*line].contains(hash));
    let middle = tests.expect("a test in the second half");
    for (what, line, key, by) in [
        (
            "the input's hash",
            0,
            "\"input_blake3\":\"",
            digit(0, "\"input_blake3\":\""),
        ),
        ("a hash", middle, hash, digit(middle, hash)),
        ("a hash that is none", middle, hash, b'z'),
        ("an outcome", reduced.unwrap(), "\"outcome\":\"FAI", b'K'),
        (
            "the result's hash",
            last,
            "\"blake3\":\"",
            digit(last, "\"blake3\":\""),
        ),
        ("the result's size", last, "\"size\":51", b'6'),
    ] {
        let bytes = forged(line, key, by);
        desk.write("forged", bytes);
        for command in ["replay", "verify"] {
            let said = desk.call(&format!("log {command} --json forged --input crash"));
            assert_eq!(
                said.code,
                Some(1),
                "{command} with {what} changed: {said:?}"
            );
            assert!(said.json()["error"]["message"].is_string(), "{said:?}");
        }
    }
}

#[test]
fn a_log_whose_outcomes_are_swapped_does_not_hold() {
    let desk = minimized();
    let log = String::from_utf8(desk.read(LOG)).unwrap();
    let swapped = log.replacen(
        "\"outcome\":\"PASS\",\"source\"",
        "\"outcome\":\"FAIL\",\"source\"",
        1,
    );
    assert_ne!(log, swapped);
    desk.write("forged", swapped);
    desk.call("log replay forged --input crash").exits(1);
    desk.call("log verify forged --input crash").exits(1);
}

#[test]
fn a_claim_can_be_verified_by_another_way_of_execution() {
    let desk = minimized();
    desk.call(&format!("log verify {LOG} --exec command"))
        .exits(0);
    let unfit = desk.call(&format!("log verify --json {LOG} --exec harness -- cat"));
    assert_eq!(unfit.exits(3).json()["error"]["kind"], "way-unfit");
}

#[test]
fn a_claim_does_not_hold_for_a_fixed_program() {
    let desk = minimized();
    let verified = desk
        .call(&format!("log verify --json {LOG} --target ul-fixed"))
        .exits(1);
    assert_eq!(verified.json()["holds"], false);
}

#[test]
fn a_torn_last_line_is_no_error() {
    let desk = minimized();
    let mut log = desk.read(LOG);
    log.truncate(log.len() - 20);
    desk.write("torn", log);
    let said = desk.call("log show torn").exits(0);
    assert!(said.out.contains("unfinished"));
    desk.call("log replay torn -o rebuilt").exits(0);
    assert_eq!(desk.read("rebuilt"), desk.read("crash.min"));
    let error = desk.call("log verify torn --json").exits(1).json();
    assert_eq!(error["error"]["kind"], "unfinished");
    assert!(error["error"]["path"].as_str().unwrap().ends_with("torn"));
}

#[test]
fn what_was_stopped_early_claims_no_more_than_that_it_fails() {
    let desk = Desk::new();
    desk.write("crash", crashes::for_ul());
    let log = "early.log.jsonl";
    desk.call("min crash --target ul -o early --budget-tests 5")
        .exits(0);
    let verified = desk.call(&format!("log verify {log}")).exits(0);
    assert!(!verified.out.contains("removal"), "{verified:?}");
    let verified = desk.call(&format!("log verify --json {log}")).exits(0);
    assert_eq!(verified.json()["claim"], "best-so-far");
}

#[test]
fn what_is_no_log_is_wrong_usage() {
    let desk = Desk::new();
    desk.write("text", "hello\n");
    desk.write("empty", "");
    desk.write("start", "{\"v\":1,\"kind\":\"start\",\"size\":1}\n");
    for name in ["text", "empty", "start", "missing", "."] {
        for command in ["show", "replay", "verify"] {
            let error = desk
                .call(&format!("log {command} --json {name}"))
                .exits(2)
                .json();
            assert!(error["error"]["message"].as_str().unwrap().contains(name));
        }
    }
}

#[test]
fn the_steps_of_a_minimization_are_shown() {
    let desk = minimized();
    let said = desk.call(&format!("log show {LOG}")).exits(0);
    assert!(said.out.contains("1-minimal"), "{}", said.out);
    let shown = desk.call(&format!("log show --json {LOG}")).exits(0).json();
    let steps = shown["steps"].as_array().unwrap();
    assert_eq!(steps.last().unwrap()["size"], 517);
    assert!(shown["executed"].as_u64() <= shown["tests"].as_u64());
}

#[test]
fn the_curve_is_drawn_into_a_file_that_is_not_overwritten() {
    let desk = minimized();
    let words = format!("log show {LOG} --svg curve.svg");
    let said = desk.call(&words).exits(0);
    assert!(
        said.out.contains("bytes over executed tests"),
        "{}",
        said.out
    );
    assert!(said.out.contains("PASS"), "{}", said.out);
    let drawing = String::from_utf8(desk.read("curve.svg")).unwrap();
    assert!(drawing.contains("<polyline") && drawing.ends_with("</svg>\n"));
    desk.write("curve.svg", "precious");
    let error = desk.call(&format!("{words} --json")).exits(2).json();
    assert_eq!(error["error"]["kind"], "exists");
    assert_eq!(desk.read("curve.svg"), b"precious");
    let shown = desk
        .call(&format!("{words} --json --force"))
        .exits(0)
        .json();
    assert!(shown["svg"].as_str().unwrap().ends_with("/curve.svg"));
    assert_eq!(desk.read("curve.svg"), drawing.as_bytes());
    // Nor is the log.
    let log = desk.read(LOG);
    desk.call(&format!("log show {LOG} --svg {LOG} --force"))
        .exits(2);
    assert_eq!(desk.read(LOG), log);
    desk.call(&format!("log show {LOG} --svg missing/curve.svg"))
        .exits(2);
}

#[test]
fn a_fifo_in_the_place_of_the_input_is_not_waited_for() {
    let desk = minimized();
    std::fs::remove_file(desk.file("crash")).unwrap();
    let made = std::process::Command::new("mkfifo")
        .arg(desk.file("crash"))
        .status();
    assert!(made.unwrap().success());
    let error = desk
        .call(&format!("log replay --json {LOG} -o rebuilt"))
        .exits(2)
        .json();
    let message = error["error"]["message"].as_str().unwrap();
    assert!(message.contains("a fifo"), "{message}");
}

#[test]
fn options_that_would_change_what_a_log_is_about_are_refused() {
    let desk = Desk::new();
    desk.write("x", "xx");
    desk.script("test.sh", "[ \"$A\" = 1 ] && [ -s \"$1\" ]");
    desk.call("min x --test ./test.sh --env A=1 --jobs 1")
        .exits(0);
    let verify = "log verify x.min.log.jsonl";
    desk.call(verify).exits(0);
    for option in ["--cwd /", "--sandbox", "--exec command"] {
        let said = desk.call(&format!("{verify} {option}")).exits(2);
        assert!(said.err.contains("interestingness test"), "{said:?}");
    }
    // A variable is that of the command line.
    desk.call(&format!("{verify} --env A=2")).exits(1);
    desk.write("y", "y");
    desk.script("moody", "[ -n \"$CRASH\" ] && kill -SEGV $$");
    let words = "min y --env-vars --env A=1 --env CRASH=2 --env B=3 --jobs 1 -- ./moody";
    desk.call(words).exits(0);
    let verify = "log verify y.min.env.log.jsonl";
    desk.call(verify).exits(0);
    let said = desk.call(&format!("{verify} --env A=9")).exits(2);
    assert!(said.err.contains("omit --env"), "{said:?}");
}

#[test]
fn a_build_that_the_way_of_the_log_cannot_run_is_verified_by_another() {
    let desk = Desk::new();
    desk.write("input", "kk");
    desk.write(
        "program.c",
        "#include <stdio.h>\nint main(void) {\n    \
         if (getchar() == 'k') *(volatile int *)8 = 1;\n    return 0;\n}\n",
    );
    let made = |more: &[&str]| {
        let mut compiler = desk.command("cc");
        compiled::run(compiler.args(more).args(["-o", "program", "program.c"]));
    };
    made(&[]);
    desk.call("min input --exec inject -- ./program").exits(0);
    made(&["-static"]);
    let words = "log verify input.min.log.jsonl";
    // It crashes at other addresses, and so by another key: that is found by running it.
    let said = desk.call(words).exits(1);
    assert!(
        said.out.contains("the result now fails differently"),
        "{said:?}"
    );
    let refused = desk.call(&format!("{words} --exec inject")).exits(3);
    assert!(refused.err.contains("--exec"), "{refused:?}");
}
