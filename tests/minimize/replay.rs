//! Replaying logs, honest and tampered with.

use ddfuzz::minimize::log::{Log, LogError};
use ddfuzz::minimize::{MinimizeError, replay};

use crate::failures::{all_of, odd};
use crate::scripted::{outcomes, run};

const INPUT: &[u8] = b"12345678";

fn honest() -> String {
    let (_, log) = run(INPUT, &mut outcomes(all_of(b"178")));
    String::from_utf8(log).expect("UTF-8")
}

/// The first line that does not hold.
fn first_bad_line(log: &str) -> u64 {
    let log = Log::parse(log.as_bytes()).expect("whole lines");
    match replay(INPUT, &log) {
        Err(MinimizeError::Log(LogError::Disagrees { line, .. })) => line,
        other => panic!("{other:?}"),
    }
}

/// Changes one line of the honest log; gives its number too.
fn tamper(found: &str, changed: impl Fn(&str) -> String) -> (u64, String) {
    let log = honest();
    let number = log
        .lines()
        .position(|line| line.contains(found))
        .expect("the line");
    let lines = log
        .lines()
        .enumerate()
        .map(|(index, line)| match index == number {
            true => changed(line),
            false => format!("{line}\n"),
        });
    (number as u64 + 1, lines.collect())
}

#[test]
fn the_result_is_rebuilt_without_the_target() {
    for seed in 0..40 {
        let test = odd(seed, INPUT);
        let (result, log) = run(INPUT, &mut outcomes(test));
        let replayed = replay(INPUT, &Log::parse(&log).expect("a log")).expect("it holds");
        assert_eq!(replayed.minimized, result.ok());
    }
}

#[test]
fn an_unfinished_log_leads_to_the_best_so_far() {
    let log = honest();
    let cut = log.find("\"kind\":\"reduce\"").expect("a reduction") + 80;
    let replayed = replay(INPUT, &Log::parse(&log.as_bytes()[..cut]).expect("a log"));
    let replayed = replayed.expect("it holds");
    assert!(replayed.minimized.is_none() && replayed.text.len() < INPUT.len());
}

#[test]
fn a_changed_candidate_is_found() {
    let changes: [(&str, &str, &str); 5] = [
        ("\"i\":4,", "\"i\":4,", "\"i\":5,"),
        ("\"i\":6,", "\"cut\":[[", "\"cut\":[[0,0],["),
        (
            "\"i\":6,",
            "\"outcome\":\"",
            "\"outcome\":\"FAIL\",\"was\":\"",
        ),
        ("\"kind\":\"reduce\"", "complement", "subset"),
        ("\"kind\":\"end\"", "\"proof\":[", "\"proof\":[0,"),
    ];
    for (line, from, to) in changes {
        let (number, log) = tamper(line, |line| format!("{}\n", line.replacen(from, to, 1)));
        let found = first_bad_line(&log);
        // A changed outcome shows itself in what follows from it.
        let follows = u64::from(to.contains("FAIL"));
        assert_eq!(found, number + follows, "{line} {to}");
    }
}

#[test]
fn a_changed_hash_is_found() {
    let (number, log) = tamper("\"i\":2,", |line| {
        let at = line.find("\"hash\":\"").expect("a hash") + 8;
        let digit = if line.as_bytes()[at] == b'0' {
            "1"
        } else {
            "0"
        };
        format!("{}{digit}{}\n", &line[..at], &line[at + 1..])
    });
    assert_eq!(first_bad_line(&log), number);
}

#[test]
fn a_line_lost_or_twice_is_found() {
    for kind in [
        "\"i\":3,",
        "\"kind\":\"reduce\"",
        "baseline",
        "axiom\",\"outcome",
    ] {
        let (number, log) = tamper(kind, |_| String::new());
        assert!(first_bad_line(&log) >= number, "{kind}");
        let (number, log) = tamper(kind, |line| format!("{line}\n{line}\n"));
        assert!(first_bad_line(&log) > number, "{kind}");
    }
}

#[test]
fn a_false_end_is_found() {
    for (from, to) in [
        ("1-minimal", "best-so-far"),
        ("\"size\":3", "\"size\":2"),
        ("\"executed\":17", "\"executed\":16"),
        ("\"done\":3", "\"done\":2"),
        ("\"blake3\":\"", "\"blake3\":\"0"),
    ] {
        let (number, log) = tamper("\"kind\":\"end\"", |line| {
            let mut line = line.replacen(from, to, 1);
            if from.contains("blake3") {
                let at = line.find("\"blake3\":\"").expect("a hash") + 10 + 64;
                line.remove(at);
            }
            format!("{line}\n")
        });
        assert_eq!(first_bad_line(&log), number, "{to}");
    }
}

#[test]
fn lines_after_the_end_do_not_hold() {
    let log = honest();
    let last = log.lines().last().expect("an end").to_owned();
    assert_eq!(
        first_bad_line(&format!("{log}{last}\n")),
        log.lines().count() as u64 + 1
    );
}

#[test]
fn a_search_ended_early_cannot_claim_minimality() {
    let log = honest();
    let confirm = log
        .find("{\"kind\":\"check\",\"what\":\"confirm\"")
        .expect("confirmations");
    let last_test = log[..confirm].trim_end().rfind('\n').expect("lines") + 1;
    let shortened = format!("{}{}", &log[..last_test], &log[confirm..]);
    assert_eq!(first_bad_line(&shortened), shortened.lines().count() as u64);
}

#[test]
fn the_log_of_another_input_is_refused() {
    let log = Log::parse(honest().as_bytes()).expect("a log");
    match replay(b"12345679", &log) {
        Err(MinimizeError::Log(LogError::Mismatch { what })) => assert_eq!(what, "input"),
        other => panic!("{other:?}"),
    }
}

#[test]
fn an_empty_log_is_refused() {
    let log = Log::parse(b"{\"v\":1,").expect("a torn line is dropped");
    assert!(matches!(
        replay(INPUT, &log),
        Err(MinimizeError::Log(LogError::Empty))
    ));
}

#[test]
fn an_answer_that_the_cache_would_not_give_is_found() {
    let cached = "\"source\":\"cache\"";
    let outcomes = [
        ("\"PASS\"", "\"UNRESOLVED\""),
        ("\"UNRESOLVED\"", "\"PASS\""),
    ];
    let (number, log) = tamper(cached, |line| {
        let (from, to) = outcomes
            .into_iter()
            .find(|(from, _)| line.contains(from))
            .expect("one");
        format!("{}\n", line.replacen(from, to, 1))
    });
    assert_eq!(first_bad_line(&log), number);
    let (number, log) = tamper(cached, |line| {
        format!("{}\n", line.replacen("cache", "run", 1))
    });
    assert_eq!(first_bad_line(&log), number);
    let run = "\"i\":0,";
    let (number, log) = tamper(run, |line| {
        format!("{}\n", line.replacen("\"run\"", "\"cache\"", 1))
    });
    assert_eq!(first_bad_line(&log), number);
}
