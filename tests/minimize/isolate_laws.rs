//! What holds for every difference: by the definition, and after every cut of its log.

use ddfuzz::delta::Outcome;
use ddfuzz::minimize::isolate::{Isolated, verify_sides};
use ddfuzz::minimize::log::{Goal, Log, Units};
use ddfuzz::minimize::{Claim, Options};
use proptest::prelude::*;

use crate::between::Case;
use crate::failures::{odd, without_times};
use crate::fixed;
use crate::scripted::outcomes;

/// By the definition: whether no single delta can be added to the one end keeping PASS, nor,
/// isolating, taken from the other keeping FAIL.
fn is_minimal(case: &Case, isolated: &Isolated, test: &dyn Fn(&[u8]) -> Outcome) -> bool {
    let whole: Vec<usize> = (0..case.failing.len()).collect();
    let isolates = isolated.claim == Claim::OneMinimalDifference;
    // Bytes of the failing input are told apart by their values: each stands there once.
    let kept = |end: &[u8]| -> Vec<usize> {
        let stands = |at: &&usize| end.contains(&case.failing[**at]);
        whole.iter().filter(stands).copied().collect()
    };
    let text = |kept: &[usize]| -> Vec<u8> { kept.iter().map(|at| case.failing[*at]).collect() };
    let (pass, fail) = (kept(&isolated.passing), kept(&isolated.failing));
    fail.iter().filter(|at| !pass.contains(at)).all(|at| {
        let with: Vec<usize> = whole
            .iter()
            .filter(|one| pass.contains(one) || *one == at)
            .copied()
            .collect();
        let without: Vec<usize> = fail.iter().filter(|one| *one != at).copied().collect();
        test(&text(&with)) != Outcome::Pass && (!isolates || test(&text(&without)) != Outcome::Fail)
    })
}

fn goals() -> impl Strategy<Value = Goal> {
    prop::sample::select(vec![Goal::Maximize, Goal::Isolate])
}

proptest! {
    #![proptest_config(fixed::seed(2009))]

    #[test]
    fn what_is_claimed_holds_by_the_definition(
        goal in goals(),
        length in 1usize..40,
        seed in any::<u64>(),
    ) {
        let input: Vec<u8> = (0..length as u8).collect();
        let test = odd(seed, &input);
        let case = Case::of(goal, &input);
        let (isolated, log) = case.isolated(&test);
        prop_assert_eq!(test(&isolated.failing), Outcome::Fail);
        prop_assert_eq!(test(&isolated.passing), Outcome::Pass);
        prop_assert_ne!(isolated.claim, Claim::BestSoFar);
        prop_assert!(is_minimal(&case, &isolated, &test));
        let size = input.len() as u64;
        prop_assert!(isolated.counts.executed <= size * size + 7 * size, "A.18");
        let log = Log::parse(&log).expect("a log");
        let verified = verify_sides(b"", &input, &log, &mut outcomes(&test), |_| ());
        prop_assert!(verified.expect("verified").holds());
    }

    #[test]
    fn a_difference_cut_twice_at_random_resumes_to_the_same_log(
        goal in goals(),
        units in prop::sample::select(vec![Units::Bytes, Units::Edits, Units::EditBytes]),
        passing in prop::collection::vec(prop::sample::select(b"abc".as_slice()), 0..12),
        failing in prop::collection::vec(prop::sample::select(b"abcd".as_slice()), 1..32),
        (monotone, ordered, without_runs) in any::<(bool, bool, bool)>(),
        seed in any::<u64>(),
        cuts in prop::array::uniform2(any::<prop::sample::Index>()),
    ) {
        let case = Case::new(goal, units, &passing, &failing).with(|record| {
            record.monotone = monotone && without_runs;
            record.ordered = ordered && without_runs;
        });
        let start = case.passing.clone();
        let other = odd(seed, &failing);
        let test = move |text: &[u8]| match text {
            text if text == start => Outcome::Pass,
            text => other(text),
        };
        prop_assume!(passing != failing);
        let passing = if units == Units::Bytes { Vec::new() } else { passing };
        let case = Case { passing, ..case };
        let (result, whole) = case.run(&mut outcomes(test.clone()));
        // Where odd lets the empty input fail, both runs say so.
        let mut log = whole.clone();
        for cut in cuts {
            let left = log[..cut.index(log.len() + 1)].to_vec();
            let mut oracle = outcomes(test.clone());
            let (resumed, again) = case.go_on(&left, &mut oracle, &mut Options::default());
            prop_assert_eq!(resumed.ok(), result.as_ref().ok().cloned());
            log = again;
        }
        prop_assert_eq!(without_times(&log), without_times(&whole));
    }
}
