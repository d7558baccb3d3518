//! Budgets, and stopping.

use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use ddfuzz::delta::Outcome;
use ddfuzz::minimize::{Answer, Claim, MinimizeError, Options, OracleError};

use crate::failures::{all_of, without_times};
use crate::scripted::{answers, outcomes, resume_with, run, run_with, start};

const INPUT: &[u8] = b"1234567812345678abcdefgh";

#[test]
fn a_budget_of_tests_ends_with_the_best_so_far_and_what_is_proven_of_it() {
    let mut options = Options {
        budget_tests: Some(9),
        ..Options::default()
    };
    let mut oracle = outcomes(all_of(b"178"));
    let (result, log) = run_with(INPUT, start(INPUT), &mut oracle, &mut options);
    let result = result.expect("a result");
    assert_eq!(result.claim, Claim::BestSoFar);
    assert_eq!(result.counts.executed, 9);
    assert!(result.proved.done < result.proved.of);
    assert_eq!(all_of(b"178")(&result.text), Outcome::Fail);
    let end = without_times(&log).pop().expect("an end");
    assert_eq!(end["claim"], "best-so-far");
}

#[test]
fn a_budget_of_no_time_leaves_the_input_as_it_is() {
    let mut options = Options {
        budget_time: Some(Duration::ZERO),
        ..Options::default()
    };
    let mut oracle = outcomes(all_of(b"178"));
    let (result, _) = run_with(INPUT, start(INPUT), &mut oracle, &mut options);
    let result = result.expect("a result");
    assert_eq!((result.text.as_slice(), result.counts.executed), (INPUT, 0));
    assert_eq!(result.claim, Claim::BestSoFar);
}

#[test]
fn a_budget_of_time_does_not_count_what_it_stood_still() {
    // As if all of it were such time.
    let still = AtomicU64::new(u64::MAX);
    let mut options = Options {
        budget_time: Some(Duration::from_nanos(1)),
        callback_us: Some(&still),
        ..Options::default()
    };
    let mut oracle = outcomes(all_of(b"178"));
    let (result, _) = run_with(INPUT, start(INPUT), &mut oracle, &mut options);
    assert_eq!(result.expect("a result").claim, Claim::OneMinimal);
}

#[test]
fn a_budget_that_suffices_changes_nothing() {
    let test = all_of(b"178");
    let (unbounded, log) = run(INPUT, &mut outcomes(test.clone()));
    let executed = unbounded.as_ref().expect("a result").counts.executed;
    let mut options = Options {
        budget_tests: Some(executed),
        ..Options::default()
    };
    let (bounded, bounded_log) = run_with(INPUT, start(INPUT), &mut outcomes(test), &mut options);
    assert_eq!(bounded.expect("a result"), unbounded.expect("a result"));
    assert_eq!(without_times(&bounded_log), without_times(&log));
}

#[test]
fn a_resumed_budget_counts_the_tests_before() {
    let test = all_of(b"178");
    let bounded = || Options {
        budget_tests: Some(9),
        ..Options::default()
    };
    let (_, whole) = run_with(
        INPUT,
        start(INPUT),
        &mut outcomes(test.clone()),
        &mut bounded(),
    );
    let mut oracle = outcomes(test);
    let left = &whole[..whole.len() * 2 / 3];
    let (_, resumed) = resume_with(INPUT, start(INPUT), left, &mut oracle, &mut bounded());
    assert_eq!(without_times(&resumed), without_times(&whole));
}

#[test]
fn a_stopped_minimization_says_so_and_goes_on_to_the_same_log() {
    let test = all_of(b"178");
    let (_, whole) = run(INPUT, &mut outcomes(test.clone()));
    let stop = AtomicBool::new(false);
    let asked = AtomicUsize::new(0);
    let mut oracle = answers(|text, _| {
        if asked.fetch_add(1, Ordering::Relaxed) == 12 {
            stop.store(true, Ordering::Relaxed);
        }
        Ok(Answer::of(test(text)))
    });
    let mut options = Options {
        stop: Some(&stop),
        ..Options::default()
    };
    let (result, left) = run_with(INPUT, start(INPUT), &mut oracle, &mut options);
    assert!(
        matches!(result, Err(MinimizeError::Interrupted { .. })),
        "{result:?}"
    );
    assert_eq!(asked.load(Ordering::Relaxed), 13);

    let mut rest = outcomes(all_of(b"178"));
    let (result, resumed) = resume_with(
        INPUT,
        start(INPUT),
        &left,
        &mut rest,
        &mut Options::default(),
    );
    assert_eq!(result.expect("a result").claim, Claim::OneMinimal);
    assert_eq!(without_times(&resumed), without_times(&whole));
}

#[test]
fn a_resumed_budget_of_time_counts_the_time_before() {
    let hour = Duration::from_secs(3600);
    let slow = |text: &[u8]| Answer {
        cost: hour,
        ..Answer::of(all_of(b"178")(text))
    };
    let mut left_to_answer = 12;
    let mut oracle = answers(|text, _| {
        left_to_answer -= 1;
        match left_to_answer {
            0 => Err(OracleError::Failed {
                why: "the target is gone".to_owned(),
            }),
            _ => Ok(slow(text)),
        }
    });
    let (_, left) = run_with(INPUT, start(INPUT), &mut oracle, &mut Options::default());

    let mut rest = outcomes(all_of(b"178"));
    let mut options = Options {
        budget_time: Some(hour),
        ..Options::default()
    };
    let (result, _) = resume_with(INPUT, start(INPUT), &left, &mut rest, &mut options);
    assert_eq!(result.expect("a result").claim, Claim::BestSoFar);
    assert_eq!((rest.asked.len(), rest.asked_fresh.len()), (0, 3));
}

#[test]
fn a_resumed_budget_of_time_counts_what_has_passed_whatever_the_number_of_workers() {
    // Tests of two workers that overlap, until a second has passed and one says so.
    let test = all_of(b"178");
    let (whole, log) = run(INPUT, &mut outcomes(test.clone()));
    let whole = whole.expect("a result");
    let tests = |log: &[u8], us: u64, spent: Option<u64>| {
        let mut lines = Vec::new();
        let mut stamps = spent.into_iter();
        for line in String::from_utf8(log.to_vec()).expect("UTF-8").lines() {
            let mut line: serde_json::Value = serde_json::from_str(line).expect("JSON");
            if line["kind"] == "end" {
                break;
            }
            if line["source"] == "run" {
                line["us"] = us.into();
                if let Some(spent) = stamps.next() {
                    line["spent_ms"] = spent.into();
                }
            }
            lines.extend(serde_json::to_vec(&line).expect("JSON"));
            lines.push(b'\n');
        }
        let lines: Vec<&[u8]> = lines.split_inclusive(|byte| *byte == b'\n').collect();
        lines[..lines.len() / 2].concat()
    };
    let claim = |left: &[u8]| {
        let mut options = Options {
            budget_time: Some(Duration::from_secs(60)),
            ..Options::default()
        };
        let mut oracle = outcomes(test.clone());
        let (result, _) = resume_with(INPUT, start(INPUT), left, &mut oracle, &mut options);
        result.expect("a result").claim
    };
    assert_eq!(whole.claim, Claim::OneMinimal);
    // Each of several tests took 50 seconds, but all together no more than two.
    assert_eq!(
        claim(&tests(&log, 50_000_000, Some(2_000))),
        Claim::OneMinimal
    );
    // And so short ones, that the workers of today would have run in no time.
    assert_eq!(claim(&tests(&log, 10, Some(61_000))), Claim::BestSoFar);
    // A log of an older version does not say.
    assert_eq!(claim(&tests(&log, 50_000_000, None)), Claim::BestSoFar);
}

#[test]
fn the_time_that_has_passed_is_recorded_once_a_second() {
    let slow = |text: &[u8], _: bool| {
        std::thread::sleep(Duration::from_millis(300));
        Ok(Answer::of(all_of(b"178")(text)))
    };
    let (result, log) = run(INPUT, &mut answers(slow));
    result.expect("a result");
    let spent = String::from_utf8(log).expect("UTF-8");
    let spent = spent.lines().filter_map(|line| {
        let line: serde_json::Value = serde_json::from_str(line).expect("JSON");
        line["spent_ms"].as_u64()
    });
    let spent: Vec<u64> = spent.collect();
    assert!(spent.len() > 1, "{spent:?}");
    assert!(
        spent.windows(2).all(|two| two[1] >= two[0] + 1000),
        "{spent:?}"
    );
}
