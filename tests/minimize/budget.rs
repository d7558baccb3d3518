//! Budgets, and stopping.

use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use ddfuzz::delta::Outcome;
use ddfuzz::exec::{Limits, Program, Target, Way};
use ddfuzz::minimize::log::{Line, Log, Source, StartLine, TargetRecord};
use ddfuzz::minimize::{Answer, Claim, MinimizeError, Options, OracleError, Rate, Warning, replay};

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
    let (result, log) = run_with(INPUT, start(INPUT), &mut oracle, &mut options);
    let result = result.expect("a result");
    assert_eq!((result.text.as_slice(), result.counts.executed), (INPUT, 0));
    assert_eq!(result.claim, Claim::BestSoFar);
    assert_eq!(result.warnings, [Warning::Unsearched]);
    // It has to be known that the input fails.
    assert_eq!((oracle.asked.len(), oracle.asked_fresh.len()), (1, 0));
    goes_on(&log, &result);

    // The caller may know that.
    options.shown_in = Some(Duration::ZERO);
    let mut none = answers(|_, _| panic!("nothing is to be run"));
    let (result, log) = run_with(INPUT, start(INPUT), &mut none, &mut options);
    let result = result.expect("a result");
    assert_eq!(result.text, INPUT);
    assert_eq!(result.warnings, [Warning::Unsearched]);
    goes_on(&log, &result);
}

/// Checks that a log that a budget has ended gives this result, and goes on without the budget.
fn goes_on(log: &[u8], result: &ddfuzz::minimize::Minimized) {
    let parsed = Log::parse(log).expect("a log");
    let replayed = replay(INPUT, &parsed).expect("it holds");
    assert_eq!(replayed.minimized.as_ref(), Some(result));
    let mut oracle = outcomes(all_of(b"178"));
    let options = &mut Options::default();
    let (whole, _) = resume_with(INPUT, start(INPUT), log, &mut oracle, options);
    assert_eq!(whole.expect("a result").claim, Claim::OneMinimal);
}

#[test]
fn an_input_that_has_not_failed_yet_is_run_again_whatever_the_time() {
    let mut options = Options {
        budget_time: Some(Duration::ZERO),
        ..Options::default()
    };
    let mut runs = 0;
    let mut oracle = answers(|_, _| {
        runs += 1;
        Ok(Answer::of(match runs {
            3 => Outcome::Fail,
            _ => Outcome::Pass,
        }))
    });
    let (result, _) = run_with(INPUT, start(INPUT), &mut oracle, &mut options);
    let result = result.expect("a result");
    let rate = Rate { hits: 1, tries: 3 };
    assert_eq!((result.baseline, result.flaky()), (rate, Some(rate)));
}

/// The begin of a log whose tests have taken hours, in which a smaller input has failed.
fn left_after_hours() -> Vec<u8> {
    let hour = Duration::from_secs(3600);
    let mut left_to_answer = 12;
    let mut oracle = answers(|text, _| {
        left_to_answer -= 1;
        match left_to_answer {
            0 => Err(OracleError::Failed {
                why: "the target is gone".to_owned(),
            }),
            _ => Ok(Answer {
                cost: hour,
                ..Answer::of(all_of(b"178")(text))
            }),
        }
    });
    let (_, left) = run_with(INPUT, start(INPUT), &mut oracle, &mut Options::default());
    let lines = without_times(&left);
    assert!(lines.iter().any(|line| line["kind"] == "reduce"));
    left
}

#[test]
fn a_budget_of_time_leaves_one_confirmation_of_a_smaller_result() {
    let left = left_after_hours();
    let options = || Options {
        budget_time: Some(Duration::from_secs(3600)),
        ..Options::default()
    };
    let mut oracle = outcomes(all_of(b"178"));
    let (result, log) = resume_with(INPUT, start(INPUT), &left, &mut oracle, &mut options());
    let result = result.expect("a result");
    assert_eq!((oracle.asked.len(), oracle.asked_fresh.len()), (0, 1));
    assert!(result.text.len() < INPUT.len());
    assert_eq!(result.claim, Claim::BestSoFar);
    let rate = Rate { hits: 1, tries: 1 };
    assert_eq!(
        result.warnings,
        [Warning::Unconfirmed {
            rate,
            unrepeated: 0
        }]
    );
    goes_on(&log, &result);

    // One that does not fail then is no result.
    let mut never = outcomes(|_| Outcome::Pass);
    let (result, log) = resume_with(INPUT, start(INPUT), &left, &mut never, &mut options());
    let result = result.expect("a result");
    assert_eq!(never.asked_fresh.len(), 1);
    assert_eq!((&result.text[..], result.claim), (INPUT, Claim::BestSoFar));
    assert!(matches!(result.warnings[..], [Warning::Restored { .. }]));
    let replayed = replay(INPUT, &Log::parse(&log).expect("a log")).expect("it holds");
    assert_eq!(replayed.minimized, Some(result));
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
fn a_minimization_that_is_stopped_while_it_confirms_says_what_is_not_confirmed() {
    let test = all_of(b"178");
    let stop_after = |most: usize| {
        let (stop, asked) = (AtomicBool::new(false), AtomicUsize::new(0));
        let mut oracle = answers(|text, _| {
            stop.store(
                asked.fetch_add(1, Ordering::Relaxed) + 1 == most,
                Ordering::Relaxed,
            );
            Ok(Answer::of(test(text)))
        });
        let mut options = Options {
            stop: Some(&stop),
            ..Options::default()
        };
        let (result, _) = run_with(INPUT, start(INPUT), &mut oracle, &mut options);
        (result, asked.load(Ordering::Relaxed))
    };
    let (whole, all) = stop_after(usize::MAX);
    let whole = whole.expect("a result");
    let stopped = stop_after(all - 1).0.expect_err("stopped").to_string();
    let of_all = format!("interrupted at {} bytes", whole.text.len());
    assert!(stopped.starts_with(&of_all), "{stopped}");
    let open = "runs that confirm the result, which is not confirmed yet;";
    assert!(stopped.contains(open), "{stopped}");
    let stopped = stop_after(12).0.expect_err("stopped").to_string();
    assert!(!stopped.contains("confirm"), "{stopped}");
}

#[test]
fn a_minimization_stops_and_ends_by_time_among_tests_whose_outcome_is_known() {
    // Each removal of one line gives the same text.
    let text = "ab\n".repeat(50).into_bytes();
    let budget = Duration::from_millis(200);
    for budget_time in [None, Some(budget)] {
        let (stop, known) = (AtomicBool::new(false), AtomicUsize::new(0));
        let mut options = Options {
            stop: Some(&stop),
            budget_time,
            on_line: Box::new(|line| {
                if !matches!(line, Line::Test(test) if test.source == Source::Cache) {
                    return;
                }
                known.fetch_add(1, Ordering::Relaxed);
                match budget_time {
                    Some(budget) => std::thread::sleep(budget),
                    None => stop.store(true, Ordering::Relaxed),
                }
            }),
            ..Options::default()
        };
        let mut oracle = outcomes(|now: &[u8]| match now.len() < 150 {
            true => Outcome::Pass,
            false => Outcome::Fail,
        });
        let (result, _) = run_with(&text, start(&text), &mut oracle, &mut options);
        drop(options);
        assert_eq!(known.load(Ordering::Relaxed), 1, "{result:?}");
        match (budget_time, result) {
            (None, Err(MinimizeError::Interrupted { .. })) => {}
            (Some(_), Ok(result)) => assert_eq!(result.claim, Claim::BestSoFar),
            (_, other) => panic!("{other:?}"),
        }
    }
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

/// A file of chunks, of which one is marked.
fn chunks() -> Vec<u8> {
    let chunk = |id: &[u8], data: &[u8]| [id, &(data.len() as u32).to_le_bytes(), data].concat();
    let mut body = b"WAVE".to_vec();
    for at in 0..40 {
        let id = if at == 27 { b"mark" } else { b"data" };
        body.extend(chunk(id, &[at; 2048]));
    }
    chunk(b"RIFF", &body)
}

#[test]
fn a_step_on_a_large_file_ends_with_the_budget_of_time_and_is_made_again() {
    let input = chunks();
    let fails = |text: &[u8]| {
        let stated = text
            .get(4..8)
            .map(|size| size == (text.len() as u32 - 8).to_le_bytes());
        let has_mark = text.windows(4).any(|four| four == b"mark");
        match stated == Some(true) && has_mark {
            true => Outcome::Fail,
            false => Outcome::Pass,
        }
    };
    let start = || {
        let target = Target::new(Program::Bundled("ul".to_owned()));
        let target = TargetRecord::new(&target, Way::Mock);
        StartLine::new(&input, "full", target, None, Limits::default())
    };
    assert_eq!(start().structure.as_deref(), Some("riff"));
    let mut whole = outcomes(fails);
    let (whole, _) = run_with(&input, start(), &mut whole, &mut Options::default());
    let whole = whole.expect("a result");

    let mut options = Options {
        budget_time: Some(Duration::from_millis(200)),
        ..Options::default()
    };
    let mut runs = 0;
    let mut slow = answers(|text, _| {
        runs += 1;
        if runs == 7 {
            std::thread::sleep(Duration::from_millis(400));
        }
        Ok(Answer::of(fails(text)))
    });
    let (result, log) = run_with(&input, start(), &mut slow, &mut options);
    let result = result.expect("a result");
    assert_eq!(result.claim, Claim::BestSoFar);
    let parsed = Log::parse(&log).expect("a log");
    let replayed = replay(&input, &parsed).expect("it holds");
    assert_eq!(replayed.minimized.as_ref(), Some(&result));
    let options = &mut Options::default();
    let (resumed, _) = resume_with(&input, start(), &log, &mut outcomes(fails), options);
    let resumed = resumed.expect("a result");
    assert_eq!((resumed.text, resumed.claim), (whole.text, whole.claim));
}
