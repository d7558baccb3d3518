//! The minor key: it may move where bytes are deleted, stays where they are rewritten, and is held
//! throughout where that is asked for.

use ddfuzz::delta::Outcome;
use ddfuzz::minimize::log::{KeyRecord, Line, Log, LogError, StartLine};
use ddfuzz::minimize::{Answer, Claim, Journal, Minimized, Options, replay, verify};
use ddfuzz::triage::Class;

use crate::crashes::key;
use crate::memory::Memory;
use crate::scripted::{answers, run_with, start_by};

/// A text with an `A`, of 16 bytes or more, crashes by the minor key `a`; else one with a `B`, of
/// 12 or more, by `b`.
fn crash(text: &[u8]) -> Answer {
    let minor = match text {
        _ if text.contains(&b'A') && text.len() >= 16 => "a",
        _ if text.contains(&b'B') && text.len() >= 12 => "b",
        _ => return Answer::of(Outcome::Pass),
    };
    Answer {
        minor: Some(key(minor)),
        ..Answer::of(Outcome::Fail)
    }
}

const INPUT: &[u8] = b"the A and the B of a text of many words";

fn start(hold_minor: bool) -> StartLine {
    StartLine {
        key: Some(KeyRecord {
            class: Class("segv".to_owned()),
            major: key("major"),
            minor: key("a"),
        }),
        hold_minor,
        ..start_by(INPUT, "full")
    }
}

fn minimized(hold_minor: bool) -> (Minimized, Vec<u8>) {
    let mut oracle = answers(|text, _| Ok(crash(text)));
    let mut options = Options::default();
    let (result, log) = run_with(INPUT, start(hold_minor), &mut oracle, &mut options);
    let parsed = Log::parse(&log).expect("a log");
    let result = result.expect("a result");
    let replayed = replay(INPUT, &parsed).expect("the log holds");
    assert_eq!(replayed.minimized.as_ref(), Some(&result));
    (result, log)
}

#[test]
fn bytes_are_rewritten_with_the_minor_key_that_the_best_has() {
    let (result, log) = minimized(false);
    let shown = String::from_utf8_lossy(&result.text).into_owned();
    assert_eq!(result.minor_after, Some(key("b")), "{shown}");
    assert_eq!(shown.len(), 12);
    let zeros = shown.bytes().filter(|byte| *byte == b'0').count();
    assert_eq!(zeros, 11, "{shown}");
    // The log says where it moved, once.
    let lines = Log::parse(&log).expect("a log").lines;
    let moves = lines.iter().filter_map(|(_, line)| match line {
        Line::Test(test) => test.minor,
        _ => None,
    });
    assert_eq!(moves.collect::<Vec<_>>(), [key("b")]);
}

#[test]
fn a_minor_key_that_is_held_stays_where_bytes_are_deleted() {
    let (result, _) = minimized(true);
    let shown = String::from_utf8_lossy(&result.text).into_owned();
    assert_eq!(result.minor_after, Some(key("a")), "{shown}");
    assert_eq!(shown.len(), 16);
    assert!(shown.contains('A'), "{shown}");
}

#[test]
fn a_log_that_holds_the_minor_key_is_not_gone_on_with_without() {
    let (_, log) = minimized(true);
    let parsed = Log::parse(&log).expect("a log");
    let memory = Memory::new(&log);
    let error = Journal::go_on(parsed, start(false), memory.writer()).err();
    assert!(
        matches!(error, Some(LogError::Mismatch { what: "minor key" })),
        "{error:?}"
    );
}

#[test]
fn a_claim_with_a_held_minor_key_is_verified_with_that_key() {
    // An `A` in 16 bytes crashes by the minor key `a`, and in 15 by `b`.
    let crash = |text: &[u8]| match (text.contains(&b'A'), text.len()) {
        (true, 16..) => with_minor("a"),
        (true, 15) => with_minor("b"),
        _ => Answer::of(Outcome::Pass),
    };
    let mut oracle = answers(|text, _| Ok(crash(text)));
    let mut options = Options::default();
    let (result, log) = run_with(INPUT, start(true), &mut oracle, &mut options);
    assert_eq!(result.expect("a result").claim, Claim::OneMinimal);
    let log = Log::parse(&log).expect("a log");
    let verified = verify(INPUT, &log, &mut oracle, |_| ()).expect("verified");
    assert!(verified.holds(), "{verified:?}");
    // A program in which the result crashes by another minor key does not have the crash.
    let mut oracle = answers(|_, _| Ok(with_minor("b")));
    let verified = verify(INPUT, &log, &mut oracle, |_| ()).expect("verified");
    assert_eq!(verified.result, Outcome::Unresolved);
}

fn with_minor(name: &str) -> Answer {
    Answer {
        minor: Some(key(name)),
        ..Answer::of(Outcome::Fail)
    }
}
