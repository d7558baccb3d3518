//! Verifying claims by running the target again.

use ddfuzz::delta::Outcome;
use ddfuzz::minimize::log::Log;
use ddfuzz::minimize::{Answer, Claim, CutOff, Options, Proved, VerifyError, verify};

use crate::failures::{all_of, subsequence};
use crate::scripted::{answers, outcomes, run, run_with, start};

const INPUT: &[u8] = b"xx[aab]yy";

fn log() -> Log {
    let (_, log) = run(INPUT, &mut outcomes(subsequence(b"[aa]")));
    Log::parse(&log).expect("a log")
}

#[test]
fn a_true_claim_is_found_to_hold_with_one_run_for_each_distinct_removal() {
    let mut oracle = outcomes(subsequence(b"[aa]"));
    let mut seen = Vec::new();
    let verified = verify(INPUT, &log(), &mut oracle, |proved| seen.push(proved.done));
    let verified = verified.expect("verified");
    assert!(verified.holds());
    assert_eq!(verified.claim, Claim::OneMinimal);
    assert_eq!(verified.proved, Proved { done: 3, of: 3 });
    assert_eq!(seen, [1, 2, 3]);
    assert_eq!(oracle.asked_fresh, [&b"[aa]"[..], b"aa]", b"[a]", b"[aa"]);
    assert_eq!(oracle.asked.len(), 0);
}

#[test]
fn a_false_claim_is_found_out() {
    let mut oracle = outcomes(subsequence(b"[a]"));
    let verified = verify(INPUT, &log(), &mut oracle, |_| ()).expect("verified");
    assert!(!verified.holds());
    let counterexample = verified.counterexample.expect("one that fails");
    assert_eq!(
        (counterexample.at, counterexample.text),
        (1..3, b"[a]".to_vec())
    );
}

#[test]
fn a_result_that_no_longer_fails_is_found_out() {
    let mut oracle = outcomes(|_| Outcome::Pass);
    let verified = verify(INPUT, &log(), &mut oracle, |_| ()).expect("verified");
    assert_eq!(verified.result, Outcome::Pass);
    assert!(!verified.holds());
}

#[test]
fn a_removal_that_is_cut_off_in_time_proves_nothing() {
    let mut oracle = answers(|text, _| {
        let cut_off = (text == b"[a]").then_some(CutOff::Time);
        Ok(Answer {
            cut_off,
            ..Answer::of(subsequence(b"[aa]")(text))
        })
    });
    let verified = verify(INPUT, &log(), &mut oracle, |_| ()).expect("verified");
    assert_eq!((verified.proved.done, verified.cut_off), (2, 1));
    assert!(!verified.holds());
}

#[test]
fn best_so_far_claims_no_more_than_that_it_fails() {
    let input = b"1234567812345678";
    let mut options = Options {
        budget_tests: Some(5),
        ..Options::default()
    };
    let test = all_of(b"178");
    let (_, log) = run_with(
        input,
        start(input),
        &mut outcomes(test.clone()),
        &mut options,
    );
    let log = Log::parse(&log).expect("a log");
    let verified = verify(input, &log, &mut outcomes(test), |_| ()).expect("verified");
    assert!(verified.holds());
    assert_eq!(verified.proved, Proved::default());
}

#[test]
fn a_log_without_an_end_makes_no_claim_to_verify() {
    let mut log = log();
    log.lines.pop();
    let error = verify(INPUT, &log, &mut outcomes(|_| Outcome::Fail), |_| ()).expect_err("error");
    assert!(matches!(error, VerifyError::Unfinished));
}

#[test]
fn a_log_that_does_not_hold_is_not_run_at_all() {
    let mut log = log();
    log.lines.remove(5);
    let mut oracle = outcomes(|_| Outcome::Fail);
    let error = verify(INPUT, &log, &mut oracle, |_| ()).expect_err("error");
    assert!(matches!(error, VerifyError::Replay(_)));
    assert_eq!(oracle.asked_fresh.len(), 0);
}
