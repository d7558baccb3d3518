//! Inputs that fail now and then.

use std::collections::HashMap;

use ddfuzz::delta::{Caching, Outcome};
use ddfuzz::minimize::log::{KeyRecord, Line, Log, StartLine, What};
use ddfuzz::minimize::{
    Answer, Claim, MinimizeError, Options, OracleError, Rate, Warning, replay, verify,
};
use ddfuzz::triage::Class;

use crate::crashes::key;
use crate::crew::{Crew, as_of_one};
use crate::failures::{subsequence, without_times};
use crate::scripted::{answers, outcomes, resume_with, run_with, start};

const INPUT: &[u8] = b"ab<cd>ef";

/// A start that holds a crash, and not a script.
fn of_crash(input: &[u8]) -> StartLine {
    StartLine {
        key: Some(KeyRecord {
            class: Class("segv".to_owned()),
            major: key("held"),
            minor: key("held"),
        }),
        ..start(input)
    }
}

/// What fails does so in every `nth` run of it, the first time in the run of this number.
fn every(
    nth: u64,
    first: u64,
    test: impl Fn(&[u8]) -> Outcome,
) -> impl FnMut(&[u8], bool) -> Result<Answer, OracleError> {
    let mut runs: HashMap<Vec<u8>, u64> = HashMap::new();
    move |text, _| {
        let run = runs.entry(text.to_vec()).or_default();
        *run += 1;
        let shows = *run >= first && (*run - first).is_multiple_of(nth);
        Ok(Answer::of(match test(text) {
            Outcome::Fail if !shows => Outcome::Pass,
            outcome => outcome,
        }))
    }
}

fn minimize(
    script: impl FnMut(&[u8], bool) -> Result<Answer, OracleError>,
) -> (
    Result<ddfuzz::minimize::Minimized, MinimizeError>,
    Vec<u8>,
    usize,
) {
    let mut oracle = answers(script);
    let mut options = Options::default();
    let (result, log) = run_with(INPUT, of_crash(INPUT), &mut oracle, &mut options);
    (result, log, oracle.asked.len())
}

#[test]
fn every_second_run_is_enough_for_the_smallest_result() {
    let (result, log, _) = minimize(every(2, 1, subsequence(b"<>")));
    let result = result.expect("a result");
    assert_eq!(result.text, b"<>");
    let half = Rate {
        hits: 10,
        tries: 20,
    };
    assert_eq!((result.baseline, result.confirmed), (half, half));
    assert_eq!(result.flaky(), Some(half));
    // What did not fail in fourteen runs is likely, and not proven.
    assert_eq!(result.claim, Claim::BestSoFar);
    assert_eq!((result.proved.done, result.proved.of), (0, 2));
    let warning = Warning::FlakyInput {
        rate: half,
        votes: 14,
    };
    assert_eq!(
        result.warnings,
        [warning, Warning::FlakyResult { rate: half }]
    );
    let said = warning.to_string();
    assert!(said.contains("in 10 of 20 runs. Each candidate was run up to 14 times"));
    // Thirteen votes, and the test itself, where nothing fails.
    let log = Log::parse(&log).expect("a log");
    let mut votes = 0;
    for (_, line) in &log.lines {
        match line {
            Line::Check(check) if check.what == What::Vote => votes += 1,
            Line::Test(test) if test.source == ddfuzz::minimize::log::Source::Run => {
                match test.outcome {
                    Outcome::Fail => assert!(votes < 14),
                    _ => assert_eq!(votes, 13),
                }
                votes = 0;
            }
            _ => {}
        }
    }
    assert_eq!(result.counts.checks, counted_checks(&log));
}

fn counted_checks(log: &Log) -> u64 {
    let checks = log.lines.iter();
    checks
        .filter(|(_, line)| matches!(line, Line::Check(_)))
        .count() as u64
}

#[test]
fn the_rarer_the_failure_the_more_runs_are_made() {
    let asked = [2, 4, 8].map(|nth| {
        let (result, _, asked) = minimize(every(nth, 1, subsequence(b"<>")));
        assert_eq!(result.expect("a result").text, b"<>", "1 of {nth}");
        asked
    });
    assert!(asked.is_sorted() && asked[0] < asked[2], "{asked:?}");
}

#[test]
fn an_input_that_was_not_seen_to_fail_in_twelve_runs_is_not_reproducible() {
    let (result, _, asked) = minimize(every(20, 13, subsequence(b"<>")));
    let error = result.expect_err("an error");
    assert!(
        matches!(error, MinimizeError::NotFailing { tries: 12, .. }),
        "{error}"
    );
    assert_eq!(asked, 12);
}

#[test]
fn a_script_that_alternates_whatever_it_is_given_is_an_error() {
    let mut asked = 0;
    let mut script = answers(|_, _| {
        asked += 1;
        let outcome = [Outcome::Pass, Outcome::Fail][asked % 2];
        Ok(Answer::of(outcome))
    });
    let (result, log) = run_with(INPUT, start(INPUT), &mut script, &mut Options::default());
    let error = result.expect_err("an error").to_string();
    assert!(
        error.contains("does not depend on the input") && error.contains("10 of 20 runs"),
        "{error}"
    );
    // The same log is the same error.
    let (again, _) = resume_with(
        INPUT,
        start(INPUT),
        &log,
        &mut outcomes(|_| Outcome::Pass),
        &mut Options::default(),
    );
    assert_eq!(again.expect_err("an error").to_string(), error);
}

#[test]
fn a_script_that_is_found_to_alternate_by_its_empty_result_is_an_error() {
    let mut asked = 0;
    // Three runs of the input and the axiom are all interesting by chance.
    let mut script = answers(|_, _| {
        asked += 1;
        Ok(Answer::of(match asked {
            ..=4 | 6 => Outcome::Fail,
            _ => Outcome::Pass,
        }))
    });
    let (result, log) = run_with(INPUT, start(INPUT), &mut script, &mut Options::default());
    let error = result.expect_err("an error").to_string();
    assert!(error.contains("empty input in 2 of 4 runs"), "{error}");
    let log = Log::parse(&log).expect("a log");
    assert!(replay(INPUT, &log).unwrap().minimized.is_none());
}

#[test]
fn a_flaky_crash_of_the_empty_input_is_its_own_reproducer() {
    let (result, _, _) = minimize(every(2, 1, |_| Outcome::Fail));
    let result = result.expect("a result");
    assert_eq!((result.text.len(), result.claim), (0, Claim::BestSoFar));
    assert_eq!(result.warnings[0], Warning::EmptyInputFails);
}

#[test]
fn a_flaky_log_cut_anywhere_resumes_to_the_same_log() {
    // An outcome that depends on the text and on how often it was asked: after a cut, the lines
    // that are left say how often that was.
    let (result, whole, _) = minimize(every(2, 1, subsequence(b"<>")));
    let result = result.expect("a result");
    for cut in (0..=whole.len()).step_by(211) {
        let left = Log::parse(&whole[..cut]).expect("a log");
        let mut oracle = answers(rest_of(&whole, left.lines.len()));
        let (again, log) = resume_with(
            INPUT,
            of_crash(INPUT),
            &whole[..cut],
            &mut oracle,
            &mut Options::default(),
        );
        assert_eq!(again.expect("a result"), result, "cut at {cut}");
        assert_eq!(without_times(&log), without_times(&whole), "cut at {cut}");
    }
}

/// Answers as the lines of a log do, from this one on.
fn rest_of(whole: &[u8], gone: usize) -> impl FnMut(&[u8], bool) -> Result<Answer, OracleError> {
    let log = Log::parse(whole).expect("a log");
    let rest: Vec<Outcome> = log.lines[gone..]
        .iter()
        .filter_map(|(_, line)| match line {
            Line::Check(check) => Some(check.outcome),
            Line::Test(test) if test.source == ddfuzz::minimize::log::Source::Run => {
                Some(test.outcome)
            }
            _ => None,
        })
        .collect();
    let mut rest = rest.into_iter();
    move |_, _| Ok(Answer::of(rest.next().expect("no more than was asked")))
}

#[test]
fn a_vote_that_is_not_due_is_found_out() {
    let (_, log, _) = minimize(every(2, 1, subsequence(b"<>")));
    let log = Log::parse(&log).expect("a log");
    let is_vote = |(_, line): &(u64, Line)| matches!(line, Line::Check(c) if c.what == What::Vote);
    let first = log.lines.iter().position(is_vote).expect("a vote");
    let mut fewer = log.clone();
    fewer.lines.remove(first);
    assert!(replay(INPUT, &fewer).is_err());
    let mut more = log.clone();
    more.lines.insert(first, log.lines[first].clone());
    assert!(replay(INPUT, &more).is_err());
    assert!(replay(INPUT, &log).is_ok());
}

#[test]
fn a_flaky_result_is_verified_by_as_many_runs_as_a_candidate_gets_and_at_least_twenty() {
    let (_, log, _) = minimize(every(2, 1, subsequence(b"<>")));
    let log = Log::parse(&log).expect("a log");
    let mut late = answers(every(20, 14, subsequence(b"<>")));
    let verified = verify(INPUT, &log, &mut late, |_| ()).expect("verified");
    assert!(verified.holds());
    assert_eq!(late.asked_fresh.len(), 14);
    let mut never = outcomes(|_| Outcome::Pass);
    let verified = verify(INPUT, &log, &mut never, |_| ()).expect("verified");
    assert!(!verified.holds());
    assert_eq!(never.asked_fresh.len(), 20);
}

#[test]
fn five_runs_have_to_agree_where_one_before_them_did_not_fail() {
    let doubtful = |input| StartLine {
        doubtful: true,
        ..of_crash(input)
    };
    let mut runs = 0;
    // The first four runs of the input fail, and the fifth does not.
    let mut script = answers(|text, _| {
        runs += u64::from(text == INPUT);
        Ok(Answer::of(match (runs == 5, subsequence(b"<>")(text)) {
            (true, Outcome::Fail) if text == INPUT => Outcome::Pass,
            (_, outcome) => outcome,
        }))
    });
    let options = &mut Options::default();
    let (result, _) = run_with(INPUT, doubtful(INPUT), &mut script, options);
    let result = result.expect("a result");
    let seen = Rate {
        hits: 19,
        tries: 20,
    };
    assert_eq!((result.baseline, result.claim), (seen, Claim::BestSoFar));
    let mut steady = outcomes(subsequence(b"<>"));
    let (result, _) = run_with(INPUT, doubtful(INPUT), &mut steady, options);
    let result = result.expect("a result");
    let all = Rate { hits: 5, tries: 5 };
    assert_eq!((result.baseline, result.claim), (all, Claim::OneMinimal));
}

#[test]
fn a_text_that_fails_only_when_it_is_run_again_is_no_ground_for_a_claim() {
    let mut runs: HashMap<Vec<u8>, u64> = HashMap::new();
    let mut script = answers(|text, _| {
        let run = runs.entry(text.to_vec()).or_default();
        *run += 1;
        let again = *run > 1 && !text.is_empty();
        Ok(Answer::of(match subsequence(b"<>")(text) {
            Outcome::Pass if again => Outcome::Fail,
            outcome => outcome,
        }))
    });
    let start = StartLine {
        search: "ddmin-2002".to_owned(),
        cache: Caching::Off,
        ..of_crash(INPUT)
    };
    let (result, log) = run_with(INPUT, start.clone(), &mut script, &mut Options::default());
    let result = result.expect("a result");
    assert_eq!(result.baseline, Rate { hits: 3, tries: 3 });
    assert_eq!(result.claim, Claim::BestSoFar);
    assert_eq!(result.warnings, [Warning::Contradicted]);
    // Its rate is looked at closely.
    assert_eq!(result.confirmed.tries, 20);
    let replayed = replay(INPUT, &Log::parse(&log).expect("a log")).expect("it holds");
    assert_eq!(replayed.minimized, Some(result));
}

/// Fails where the input is whole; a smaller one that keeps `<>` only in the search.
fn by_chance(text: &[u8], fresh: bool) -> Result<Answer, OracleError> {
    let fails = subsequence(b"<>")(text);
    Ok(Answer::of(match fails {
        Outcome::Fail if fresh && text != INPUT => Outcome::Pass,
        outcome => outcome,
    }))
}

#[test]
fn what_does_not_fail_again_is_no_result_and_the_input_as_given_is() {
    let mut script = answers(by_chance);
    let (result, whole) = run_with(INPUT, of_crash(INPUT), &mut script, &mut Options::default());
    let result = result.expect("a result");
    assert_eq!((&result.text[..], result.claim), (INPUT, Claim::BestSoFar));
    assert_eq!((result.proved.done, result.proved.of), (0, 8));
    // The input itself is steady.
    assert_eq!(result.confirmed, Rate { hits: 5, tries: 5 });
    assert_eq!(result.warnings, [Warning::Restored { size: 2 }]);
    let said = result.warnings[0].to_string();
    assert!(said.contains("(2 bytes) did not fail again"), "{said}");
    let parsed = Log::parse(&whole).expect("a log");
    let replayed = replay(INPUT, &parsed).expect("it holds");
    assert_eq!(
        (&replayed.text[..], replayed.minimized.as_ref()),
        (INPUT, Some(&result))
    );
    let verified = verify(INPUT, &parsed, &mut answers(by_chance), |_| ()).expect("verified");
    assert!(verified.holds());
    for cut in (0..=whole.len()).step_by(97) {
        let mut script = answers(by_chance);
        let options = &mut Options::default();
        let (again, log) = resume_with(INPUT, of_crash(INPUT), &whole[..cut], &mut script, options);
        assert_eq!(again.expect("a result"), result, "cut at {cut}");
        assert_eq!(without_times(&log), without_times(&whole), "cut at {cut}");
    }
    for jobs in [2, 7] {
        let crew = Crew::delayed(&by_chance, 1999);
        let (by_many, log) = crew.run(jobs, INPUT, of_crash(INPUT), &mut Options::default());
        assert_eq!(by_many.expect("a result").text, INPUT, "{jobs} workers");
        assert_eq!(as_of_one(&log), as_of_one(&whole), "{jobs} workers");
    }
}

#[test]
fn a_result_that_once_did_not_fail_again_is_never_claimed_by_a_larger_budget() {
    let mut runs_of_the_input = 0;
    // The second of three confirmations of the input does not fail.
    let mut script = answers(|text, _| {
        runs_of_the_input += u64::from(text == INPUT);
        Ok(Answer::of(match text == INPUT && runs_of_the_input == 5 {
            true => Outcome::Pass,
            false => subsequence(b"<>")(text),
        }))
    });
    let mut none = Options {
        budget_tests: Some(0),
        ..Options::default()
    };
    let (first, log) = run_with(INPUT, of_crash(INPUT), &mut script, &mut none);
    let rate = Rate { hits: 2, tries: 3 };
    assert_eq!(
        first.expect("a result").warnings,
        [Warning::FlakyResult { rate }]
    );
    let options = &mut Options::default();
    let (last, log) = resume_with(INPUT, of_crash(INPUT), &log, &mut script, options);
    let last = last.expect("a result");
    assert_eq!((&last.text[..], last.claim), (&b"<>"[..], Claim::BestSoFar));
    assert_eq!(last.warnings, [Warning::Contradicted]);
    let mut log = Log::parse(&log).expect("a log");
    let replayed = replay(INPUT, &log).expect("it holds").minimized;
    assert_eq!(replayed.as_ref(), Some(&last));
    // An older log claims more, and is read without it.
    if let Some((_, Line::End(end))) = log.lines.last_mut() {
        end.claim = Claim::OneMinimal;
    }
    let replayed = replay(INPUT, &log).expect("it holds").minimized;
    assert_eq!(replayed, Some(last));
}

#[test]
fn an_input_whose_failure_is_never_seen_again_is_the_result_with_that_rate() {
    let mut runs = 0;
    // By chance every second run of the input fails, and the first of the empty one, and then none.
    let (result, _, _) = minimize(|_, _| {
        runs += 1;
        Ok(Answer::of(match runs {
            1..=20 if runs % 2 == 1 => Outcome::Fail,
            21 => Outcome::Fail,
            _ => Outcome::Pass,
        }))
    });
    let result = result.expect("a result");
    assert_eq!(result.text, INPUT);
    let never = Rate { hits: 0, tries: 20 };
    assert_eq!((result.confirmed, result.flaky()), (never, Some(never)));
    assert!(!result.warnings.contains(&Warning::EmptyInputFails));
}

#[test]
fn a_log_that_ended_before_the_input_was_confirmed_again_is_replayed() {
    // As written until 2026-11-22.
    let log = include_bytes!("logs/best-that-did-not-fail-again.jsonl");
    let log = Log::parse(log).expect("a log");
    let replayed = replay(INPUT, &log).expect("it holds");
    assert_eq!(replayed.text, b"<>");
    let result = replayed.minimized.expect("it has ended");
    assert_eq!(result.confirmed, Rate { hits: 0, tries: 3 });
    assert_eq!(result.claim, Claim::BestSoFar);
}
