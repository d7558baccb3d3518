//! A minimization that a budget ended, and a larger one goes on with.

use ddfuzz::delta::Outcome;
use ddfuzz::minimize::log::{Line, Log};
use ddfuzz::minimize::{Claim, Minimized, Options, replay, verify};
use proptest::prelude::*;

use crate::failures::{all_of, odd, without_times};
use crate::fixed;
use crate::scripted::{outcomes, resume_with, run, start};

const INPUT: &[u8] = b"1234567812345678abcdefgh";

/// Goes on with `left` by a budget of tests; gives the result, the log and the number of runs.
fn go_on(
    input: &[u8],
    left: &[u8],
    budget: Option<u64>,
    test: impl Fn(&[u8]) -> Outcome,
) -> (Minimized, Vec<u8>, usize) {
    let mut oracle = outcomes(test);
    let mut options = Options {
        budget_tests: budget,
        ..Options::default()
    };
    let (result, log) = resume_with(input, start(input), left, &mut oracle, &mut options);
    let asked = oracle.asked.len() + oracle.asked_fresh.len();
    (result.expect("a result"), log, asked)
}

fn ends(log: &[u8]) -> usize {
    let log = Log::parse(log).expect("a log");
    let ends = log
        .lines
        .iter()
        .filter(|(_, line)| matches!(line, Line::End(_)));
    ends.count()
}

#[test]
fn a_larger_budget_goes_on_to_the_result_of_an_unbounded_run() {
    let test = all_of(b"178");
    let (unbounded, _) = run(INPUT, &mut outcomes(test.clone()));
    let unbounded = unbounded.expect("a result");
    let (first, log, _) = go_on(INPUT, &[], Some(4), test.clone());
    assert_eq!((first.claim, ends(&log)), (Claim::BestSoFar, 1));
    let (second, log, asked) = go_on(INPUT, &log, Some(7), test.clone());
    assert_eq!((second.counts.executed, asked), (7, 6));
    let (last, log, _) = go_on(INPUT, &log, None, test.clone());
    assert_eq!((last.claim, ends(&log)), (Claim::OneMinimal, 3));
    assert_eq!(last.text, unbounded.text);
    assert_eq!(last.counts.executed, unbounded.counts.executed);
    assert_eq!(last.counts.checks, unbounded.counts.checks + 6);
    let log = Log::parse(&log).expect("a log");
    assert_eq!(replay(INPUT, &log).expect("it holds").minimized, Some(last));
    let verified = verify(INPUT, &log, &mut outcomes(test), |_| ()).expect("verified");
    assert!(verified.holds());
}

#[test]
fn the_same_budget_gives_the_same_result_and_runs_nothing() {
    let test = all_of(b"178");
    let (first, log, _) = go_on(INPUT, &[], Some(4), test.clone());
    let (again, same, asked) = go_on(INPUT, &log, Some(4), test);
    assert_eq!((first, log, 0), (again, same, asked));
}

#[test]
fn what_is_proven_is_not_gone_on_with() {
    let test = all_of(b"178");
    let (_, log, _) = go_on(INPUT, &[], None, test.clone());
    let mut more = Log::parse(&log).expect("a log");
    let last_check = more.lines[more.lines.len() - 2].1.clone();
    more.lines.push((999, last_check));
    assert!(replay(INPUT, &more).is_err());
    let (_, same, asked) = go_on(INPUT, &log, Some(1000), test);
    assert_eq!((same, asked), (log, 0));
}

#[test]
fn a_log_gone_on_with_and_cut_at_any_byte_resumes_to_the_same_log() {
    let test = all_of(b"178");
    let (_, bounded, _) = go_on(INPUT, &[], Some(4), test.clone());
    let (result, whole, _) = go_on(INPUT, &bounded, None, test.clone());
    // Before the first end nothing tells of the budget that has been.
    let begun = bounded.len()
        - bounded
            .split_inclusive(|b| *b == b'\n')
            .next_back()
            .unwrap()
            .len();
    for cut in begun..=whole.len() {
        let (again, log, _) = go_on(INPUT, &whole[..cut], None, test.clone());
        assert_eq!(again, result, "cut at {cut}");
        assert_eq!(without_times(&log), without_times(&whole), "cut at {cut}");
    }
}

proptest! {
    #![proptest_config(fixed::seed(2002))]

    #[test]
    fn budgets_and_cuts_at_random_lead_to_the_same_result(
        input in prop::collection::vec(prop::sample::select(b"aabc".as_slice()), 1..32),
        seed in any::<u64>(),
        steps in prop::collection::vec((0u64..40, any::<prop::sample::Index>()), 1..5),
    ) {
        let test = odd(seed, &input);
        let (unbounded, _) = run(&input, &mut outcomes(test.clone()));
        let unbounded = unbounded.expect("a result");
        let mut log = Vec::new();
        for (budget, cut) in steps {
            let left = log[..cut.index(log.len() + 1)].to_vec();
            (_, log, _) = go_on(&input, &left, Some(budget), test.clone());
        }
        let (last, log, _) = go_on(&input, &log, None, test);
        prop_assert_eq!(&last.text, &unbounded.text);
        prop_assert_eq!((last.claim, last.proved), (unbounded.claim, unbounded.proved));
        prop_assert_eq!(last.counts.executed, unbounded.counts.executed);
        let replayed = replay(&input, &Log::parse(&log).expect("a log")).expect("it holds");
        prop_assert_eq!(replayed.minimized, Some(last));
    }
}
