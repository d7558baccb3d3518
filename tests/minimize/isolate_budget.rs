//! Maximizing and isolating within a budget.

use std::time::Duration;

use ddfuzz::delta::Outcome;
use ddfuzz::minimize::isolate::{Isolated, IsolationWarning, replay_sides};
use ddfuzz::minimize::log::{Goal, Log};
use ddfuzz::minimize::{Answer, Claim, Options};

use crate::between::Case;
use crate::failures::all_of;
use crate::scripted::{answers, outcomes};

#[test]
fn a_budget_ends_the_search_with_what_there_is() {
    let case = Case::of(Goal::Maximize, b"12345678");
    let mut options = Options {
        budget_tests: Some(4),
        ..Options::default()
    };
    let (isolated, log) = case.go_on(&[], &mut outcomes(all_of(b"178")), &mut options);
    let isolated = isolated.expect("a result");
    assert_eq!(
        (isolated.claim, isolated.counts.executed),
        (Claim::BestSoFar, 4)
    );
    assert!(matches!(
        isolated.warnings[..],
        [IsolationWarning::Unproved(_)]
    ));
    let parsed = Log::parse(&log).expect("a log");
    let replayed = replay_sides(b"", b"12345678", &parsed).expect("it holds");
    assert_eq!(replayed.isolated, Some(isolated));
    // A larger one goes on behind that end, to where none would have led.
    let mut larger = Options::default();
    let (further, log) = case.go_on(&log, &mut outcomes(all_of(b"178")), &mut larger);
    let (whole, _) = case.isolated(&all_of(b"178"));
    let further = further.expect("a result");
    assert_eq!(
        (&further.passing, further.claim, further.counts.executed),
        (&whole.passing, Claim::OneMaximal, whole.counts.executed)
    );
    let parsed = Log::parse(&log).expect("a log");
    let replayed = replay_sides(b"", b"12345678", &parsed).expect("it holds");
    assert_eq!(replayed.isolated, Some(further));
}

#[test]
fn a_side_that_once_did_not_fail_again_is_never_claimed_by_a_larger_budget() {
    let whole = b"12345678";
    let case = Case::of(Goal::Isolate, whole);
    let mut runs_of_the_input = 0;
    // The second of three confirmations of the input does not fail.
    let mut script = answers(|text, _| {
        runs_of_the_input += u64::from(text == whole);
        Ok(Answer::of(match text == whole && runs_of_the_input == 5 {
            true => Outcome::Unresolved,
            false => all_of(b"178")(text),
        }))
    });
    let mut none = Options {
        budget_tests: Some(0),
        ..Options::default()
    };
    let (first, log) = case.go_on(&[], &mut script, &mut none);
    let first = first.expect("a result");
    assert!(first.warnings.contains(&IsolationWarning::FlakyFailing));
    let (last, log) = case.go_on(&log, &mut script, &mut Options::default());
    let last = last.expect("a result");
    assert_eq!(last.claim, Claim::BestSoFar);
    assert!(last.warnings.contains(&IsolationWarning::Contradicted));
    let parsed = Log::parse(&log).expect("a log");
    let replayed = replay_sides(b"", whole, &parsed).expect("it holds");
    assert_eq!(replayed.isolated, Some(last));
}

/// Fails with 7 and 8, and passes without one of them.
fn both(text: &[u8]) -> Outcome {
    match text.contains(&b'7') && text.contains(&b'8') {
        true => Outcome::Fail,
        false => Outcome::Pass,
    }
}

/// Goes on with what is left of a log when the time is over already.
fn out_of_time(case: &Case, left: &[u8]) -> (Isolated, Vec<u8>) {
    let mut options = Options {
        budget_time: Some(Duration::ZERO),
        ..Options::default()
    };
    let (isolated, log) = case.go_on(left, &mut outcomes(both), &mut options);
    let isolated = isolated.expect("a result");
    let parsed = Log::parse(&log).expect("a log");
    let replayed = replay_sides(b"", b"12345678", &parsed).expect("it holds");
    assert_eq!(replayed.isolated.as_ref(), Some(&isolated));
    (isolated, log)
}

#[test]
fn a_budget_of_time_ends_the_runs_before_the_search_after_one_of_each_input() {
    for goal in [Goal::Maximize, Goal::Isolate] {
        let case = Case::of(goal, b"12345678");
        let (isolated, log) = out_of_time(&case, &[]);
        assert_eq!((isolated.counts.checks, isolated.counts.executed), (2, 0));
        assert_eq!(isolated.warnings, [IsolationWarning::Unsearched]);
        assert_eq!(
            (&*isolated.passing, &*isolated.failing),
            (&b""[..], &b"12345678"[..])
        );
        // Without a budget it goes on to where it would have led.
        let mut whole = Options::default();
        let (further, _) = case.go_on(&log, &mut outcomes(both), &mut whole);
        let further = further.expect("a result");
        let (expected, _) = case.isolated(&both);
        assert_eq!(
            (further.passing, further.failing, further.claim),
            (expected.passing, expected.failing, expected.claim)
        );
    }
}

#[test]
fn a_budget_of_time_ends_the_confirmations_after_one_of_each_side() {
    for (goal, sides) in [(Goal::Maximize, 1), (Goal::Isolate, 2)] {
        let case = Case::of(goal, b"12345678");
        let (expected, log) = case.isolated(&both);
        let text = String::from_utf8(log).expect("text");
        let confirmed = text.find("{\"kind\":\"check\",\"what\":\"confirm\"");
        let left = &text[..confirmed.expect("a confirmation")];
        let (isolated, log) = out_of_time(&case, left.as_bytes());
        let (passing, failing) = (isolated.confirmed_passing, isolated.confirmed_failing);
        assert_eq!((passing.tries, passing.tries + failing.tries), (1, sides));
        assert_eq!(isolated.claim, Claim::BestSoFar);
        assert_eq!(isolated.warnings, [IsolationWarning::Unconfirmed]);
        let mut whole = Options::default();
        let (further, _) = case.go_on(&log, &mut outcomes(both), &mut whole);
        assert_eq!(further.expect("a result").claim, expected.claim);
    }
}
