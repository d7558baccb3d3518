//! Several workers change speed, and nothing else.

use std::cell::RefCell;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use ddfuzz::delta::{Caching, Outcome};
use ddfuzz::minimize::{
    Answer, Claim, Counts, MinimizeError, Minimized, Options, OracleError, SEARCHES, Slip, SlipKeys,
};
use proptest::prelude::*;

use crate::crashes::{keys, slip};
use crate::crew::{Crew, as_of_one};
use crate::failures::{all_of, odd, subsequence};
use crate::fixed;
use crate::scripted::{outcomes, run_with, start, start_by, start_caching};

const INPUT: &[u8] = b"12345678abcd";
const JOBS: [usize; 3] = [1, 2, 7];

type Shape = dyn Fn(&[u8]) -> Outcome + Sync;

fn of_one(result: &Minimized) -> Minimized {
    let counts = Counts {
        speculative: 0,
        ..result.counts
    };
    Minimized {
        counts,
        ..result.clone()
    }
}

#[test]
fn any_number_of_workers_writes_the_log_of_one_by_every_search() {
    let shapes: [(&str, &Shape); 3] = [
        ("unresolved", &all_of(b"17c")),
        ("passing", &subsequence(b"36d")),
        ("odd", &odd(7, INPUT)),
    ];
    for search in SEARCHES {
        for (shape, test) in shapes {
            let start = || start_by(INPUT, search);
            let mut oracle = outcomes(test);
            let (alone, whole) = run_with(INPUT, start(), &mut oracle, &mut Options::default());
            let alone = alone.expect("a result");
            for jobs in JOBS {
                let script = |text: &[u8], _| Ok(Answer::of(test(text)));
                let crew = Crew::delayed(&script, 1999);
                let (result, log) = crew.run(jobs, INPUT, start(), &mut Options::default());
                let result = result.expect("a result");
                let name = format!("{search}, {shape}, {jobs} workers");
                assert_eq!(of_one(&result), alone, "{name}");
                assert_eq!(as_of_one(&log), as_of_one(&whole), "{name}");
                let Counts {
                    executed,
                    checks,
                    speculative,
                    ..
                } = result.counts;
                assert_eq!(crew.answered(), executed + checks + speculative, "{name}");
            }
        }
    }
}

proptest! {
    #![proptest_config(fixed::seed(2000))]

    #[test]
    fn any_outcomes_give_the_log_of_one_worker_also_when_it_is_resumed(
        input in prop::collection::vec(prop::sample::select(b"aabc".as_slice()), 1..24),
        seed in any::<u64>(),
        search in prop::sample::select(SEARCHES),
        jobs in 1_usize..8,
        cut in any::<prop::sample::Index>(),
    ) {
        let test = odd(seed, &input);
        let start = || start_by(&input, search);
        let (alone, whole) =
            run_with(&input, start(), &mut outcomes(test.clone()), &mut Options::default());
        let script = |text: &[u8], _| Ok(Answer::of(test(text)));
        let crew = Crew::new(&script);
        let left = &whole[..cut.index(whole.len() + 1)];
        let (result, log) = crew.resume(jobs, &input, start(), left, &mut Options::default());
        prop_assert_eq!(of_one(&result.expect("a result")), alone.expect("a result"));
        prop_assert_eq!(as_of_one(&log), as_of_one(&whole));
    }
}

#[test]
fn every_rule_of_caching_holds_for_several_workers() {
    for caching in [Caching::Text, Caching::Configuration, Caching::Off] {
        let start = || start_caching(b"abababab", caching);
        let test = all_of(b"ab");
        let mut oracle = outcomes(test.clone());
        let (_, whole) = run_with(b"abababab", start(), &mut oracle, &mut Options::default());
        let script = |text: &[u8], _| Ok(Answer::of(test(text)));
        let crew = Crew::new(&script);
        let (_, log) = crew.run(3, b"abababab", start(), &mut Options::default());
        assert_eq!(as_of_one(&log), as_of_one(&whole), "{caching:?}");
    }
}

#[test]
fn a_budget_of_tests_counts_only_what_is_committed() {
    for budget in [0, 1, 9, 20] {
        let bounded = || Options {
            budget_tests: Some(budget),
            ..Options::default()
        };
        let test = all_of(b"17c");
        let mut oracle = outcomes(test.clone());
        let (alone, whole) = run_with(INPUT, start(INPUT), &mut oracle, &mut bounded());
        for jobs in JOBS {
            let script = |text: &[u8], _| Ok(Answer::of(test(text)));
            let crew = Crew::delayed(&script, budget);
            let (result, log) = crew.run(jobs, INPUT, start(INPUT), &mut bounded());
            let (result, alone) = (result.expect("a result"), alone.as_ref().expect("a result"));
            assert_eq!(of_one(&result), *alone, "{budget} tests, {jobs} workers");
            assert_eq!(result.counts.executed, budget);
            assert_eq!(as_of_one(&log), as_of_one(&whole));
        }
    }
}

#[test]
fn a_stopped_crew_goes_on_to_the_same_log() {
    let test = all_of(b"17c");
    let mut oracle = outcomes(test.clone());
    let (_, whole) = run_with(INPUT, start(INPUT), &mut oracle, &mut Options::default());
    for jobs in JOBS {
        let stop = AtomicBool::new(false);
        let lines = RefCell::new(0);
        let mut options = Options {
            stop: Some(&stop),
            on_line: Box::new(|_| {
                *lines.borrow_mut() += 1;
                stop.store(*lines.borrow() >= 15, Ordering::Relaxed);
            }),
            ..Options::default()
        };
        let script = |text: &[u8], _| Ok(Answer::of(test(text)));
        let crew = Crew::delayed(&script, 15);
        let (result, left) = crew.run(jobs, INPUT, start(INPUT), &mut options);
        assert!(matches!(result, Err(MinimizeError::Interrupted { .. })));
        let again = Crew::new(&script);
        let (result, log) = again.resume(jobs, INPUT, start(INPUT), &left, &mut Options::default());
        assert_eq!(result.expect("a result").claim, Claim::OneMinimal);
        assert_eq!(as_of_one(&log), as_of_one(&whole));
    }
}

/// The failure needs a and g. What has only a and b is another bug, and what has neither e nor f
/// a third.
fn slipping(text: &[u8], _: bool) -> Result<Answer, OracleError> {
    let has = |byte: u8| text.contains(&byte);
    let keys = match (has(b'a') && has(b'g'), has(b'a') && has(b'b')) {
        (true, _) => return Ok(Answer::of(Outcome::Fail)),
        (_, true) => keys("other", if has(b'd') { "with d" } else { "without d" }),
        _ if !has(b'e') && has(b'2') => keys("third", "third"),
        _ => return Ok(Answer::of(Outcome::Pass)),
    };
    Ok(Answer {
        slip: Some(slip(keys, text)),
        ..Answer::of(Outcome::Unresolved)
    })
}

/// A slip that was handed over: its keys, input, test, and whether it had its record.
type Filed = (SlipKeys, Vec<u8>, Option<u64>, bool);

fn filing<T>(work: impl FnOnce(&mut Options<'_>) -> T) -> (T, Vec<Filed>) {
    let filed = RefCell::new(Vec::new());
    let on_slip = Box::new(|slip: &Slip, test| {
        let with_record = slip.crash.is_some();
        let one = (slip.keys, slip.input.clone(), test, with_record);
        filed.borrow_mut().push(one);
        Ok(())
    });
    let mut options = Options {
        on_slip,
        ..Options::default()
    };
    let done = work(&mut options);
    drop(options);
    (done, filed.into_inner())
}

#[test]
fn slips_of_tests_are_those_of_one_worker_and_all_others_are_handed_over_too() {
    let input = b"ab1cd2ef3g2h1bd";
    for search in SEARCHES {
        let start = || start_by(input, search);
        let one = Crew::new(&slipping);
        let (_, alone) = filing(|options| one.run(1, input, start(), options).0.map(drop));
        let of_tests = |filed: &[Filed]| -> Vec<Filed> {
            let tests = filed.iter().filter(|one| one.2.is_some());
            tests.cloned().collect()
        };
        for (jobs, seed) in JOBS.into_iter().flat_map(|jobs| [(jobs, 1), (jobs, 2)]) {
            let crew = Crew::delayed(&slipping, seed);
            let ((result, _), filed) = filing(|options| crew.run(jobs, input, start(), options));
            assert!(result.is_ok());
            assert_eq!(
                of_tests(&filed),
                of_tests(&alone),
                "{search}, {jobs} workers"
            );
            assert!(
                filed.iter().all(|one| one.3),
                "{search}: each has its record"
            );
            for met in crew.met.into_inner().expect("whole") {
                assert!(filed.iter().any(|one| one.0 == met), "{search}: {met:?}");
            }
            let strays: Vec<&Filed> = filed.iter().filter(|one| one.2.is_none()).collect();
            for stray in &strays {
                let same = strays.iter().filter(|one| one.0 == stray.0);
                assert_eq!(same.count(), 1, "{search}: once");
            }
        }
    }
}

#[test]
fn a_crash_met_only_by_a_test_in_vain_is_handed_over_without_a_test() {
    // The first half fails, so that the second, which is run ahead, is never asked for.
    let stray = keys("only", "there");
    let both = std::sync::Barrier::new(2);
    let script = |text: &[u8], _| match text {
        b"wwww" => {
            both.wait();
            Ok(Answer {
                slip: Some(slip(stray, text)),
                ..Answer::of(Outcome::Unresolved)
            })
        }
        b"aaaa" => {
            both.wait();
            Ok(Answer::of(Outcome::Fail))
        }
        [] => Ok(Answer::of(Outcome::Pass)),
        _ => Ok(Answer::of(Outcome::Fail)),
    };
    let crew = Crew::new(&script);
    let ((result, log), filed) =
        filing(|options| crew.run(2, b"aaaawwww", start(b"aaaawwww"), options));
    let result = result.expect("a result");
    assert_eq!(result.text, b"a");
    assert_eq!(filed, [(stray, b"wwww".to_vec(), None, true)]);
    assert_eq!(result.slips, []);
    assert!(result.counts.speculative >= 1);
    assert!(!String::from_utf8(log).expect("UTF-8").contains("slip"));
}

#[test]
fn a_worker_whose_oracle_fails_is_given_up_and_the_others_go_on() {
    let test = all_of(b"17c");
    let mut oracle = outcomes(test.clone());
    let (_, whole) = run_with(INPUT, start(INPUT), &mut oracle, &mut Options::default());
    let main = std::thread::current().id();
    let left = AtomicU64::new(12);
    // All workers fail in the end, and what the first oracle says in our thread counts.
    let script = |text: &[u8], _| {
        let ours = std::thread::current().id() == main;
        let gone = left.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |n| n.checked_sub(1));
        match gone {
            Err(_) if !ours => Err(OracleError::Failed {
                why: "the target is gone".to_owned(),
            }),
            _ => Ok(Answer::of(test(text))),
        }
    };
    let crew = Crew::new(&script);
    let (result, log) = crew.run(3, INPUT, start(INPUT), &mut Options::default());
    assert_eq!(result.expect("a result").claim, Claim::OneMinimal);
    assert_eq!(as_of_one(&log), as_of_one(&whole));
}

#[test]
fn an_oracle_that_fails_for_all_workers_ends_the_minimization_and_it_can_be_resumed() {
    let test = all_of(b"17c");
    let mut oracle = outcomes(test.clone());
    let (_, whole) = run_with(INPUT, start(INPUT), &mut oracle, &mut Options::default());
    for jobs in JOBS {
        let left = AtomicU64::new(12);
        let failing = |text: &[u8], _| {
            let gone = left.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |n| n.checked_sub(1));
            gone.map(|_| Answer::of(test(text)))
                .map_err(|_| OracleError::Failed {
                    why: "the target is gone".to_owned(),
                })
        };
        let crew = Crew::delayed(&failing, 3);
        let (result, log) = crew.run(jobs, INPUT, start(INPUT), &mut Options::default());
        assert!(matches!(result, Err(MinimizeError::Oracle(_))), "{jobs}");
        let script = |text: &[u8], _| Ok(Answer::of(test(text)));
        let crew = Crew::new(&script);
        let (_, resumed) = crew.resume(jobs, INPUT, start(INPUT), &log, &mut Options::default());
        assert_eq!(as_of_one(&resumed), as_of_one(&whole), "{jobs} workers");
    }
}
