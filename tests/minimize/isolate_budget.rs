//! Maximizing and isolating within a budget.

use ddfuzz::delta::Outcome;
use ddfuzz::minimize::isolate::{IsolationWarning, replay_sides};
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
