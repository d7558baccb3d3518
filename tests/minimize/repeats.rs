//! The runs on which a claim rests are repeated, so that an unsteady failure that is seen to pass once
//! does not make a proof.

use ddfuzz::delta::Outcome;
use ddfuzz::minimize::log::{KeyRecord, Line, Log, StartLine, What};
use ddfuzz::minimize::{Answer, Claim, Minimized, Options, OracleError, Warning, replay};
use ddfuzz::triage::Class;

use crate::crashes::key;
use crate::crew::{Crew, as_of_one};
use crate::failures::{subsequence, without_times};
use crate::scripted::{answers, outcomes, resume_with, run_with, start, start_by};

const INPUT: &[u8] = b"ab<cd>ef";

fn repeating(mut start: StartLine) -> StartLine {
    start.repeat_claims();
    start
}

/// Fails with `<` in it, but the first run of `<` alone passes.
fn late() -> impl FnMut(&[u8], bool) -> Result<Answer, OracleError> {
    let mut is_first = true;
    move |text, _| {
        let passes = text == b"<" && std::mem::take(&mut is_first);
        Ok(Answer::of(match passes {
            true => Outcome::Pass,
            false => subsequence(b"<")(text),
        }))
    }
}

/// An input of which `<` is left if the first run of it fails, else two bytes.
const TWO: &[u8] = b"<>";

#[test]
fn a_removal_that_fails_when_it_is_run_again_is_the_result_and_nothing_is_claimed() {
    let options = &mut Options::default();
    let once = run_with(TWO, start(TWO), &mut answers(late()), options).0;
    let once = once.expect("a result");
    assert_eq!((&once.text[..], once.claim), (TWO, Claim::OneMinimal));

    let of = || repeating(start(TWO));
    let (result, log) = run_with(TWO, of(), &mut answers(late()), options);
    let result = result.expect("a result");
    assert_eq!(
        (&result.text[..], result.claim),
        (&b"<"[..], Claim::BestSoFar)
    );
    assert_eq!(result.warnings, [Warning::Contradicted]);
    assert_eq!(result.flaky(), Some(result.confirmed));
    assert_eq!(result.confirmed.tries, 20);
    let parsed = Log::parse(&log).expect("a log");
    let replayed = replay(TWO, &parsed).expect("it holds").minimized;
    assert_eq!(replayed.as_ref(), Some(&result));
    // A log that was cut off behind the first run of `<` resumes to the same log.
    let first = parsed.lines.iter().position(|(_, line)| match line {
        Line::Test(test) => test.size == 1 && !test.has_failed(),
        _ => false,
    });
    let lines: Vec<&[u8]> = log.split_inclusive(|byte| *byte == b'\n').collect();
    for lines in first.expect("a test") + 3..lines.len() {
        let left = log.split_inclusive(|byte| *byte == b'\n').take(lines);
        let left: Vec<u8> = left.flatten().copied().collect();
        let mut oracle = outcomes(subsequence(b"<"));
        let (again, whole) = resume_with(TWO, of(), &left, &mut oracle, options);
        assert_eq!(again.expect("a result"), result, "{lines} lines");
        assert_eq!(without_times(&whole), without_times(&log), "{lines} lines");
    }
}

#[test]
fn a_steady_failure_has_the_same_tests_and_more_checks() {
    let test = subsequence(b"<>");
    for search in ["full", "ddmin", "dd"] {
        let [before, now] = [false, true].map(|repeats| {
            let start = match repeats {
                true => repeating(start_by(INPUT, search)),
                false => start_by(INPUT, search),
            };
            let mut oracle = outcomes(test.clone());
            let (result, log) = run_with(INPUT, start, &mut oracle, &mut Options::default());
            (
                result.expect("a result"),
                Log::parse(&log).expect("a log"),
                log,
            )
        });
        let tests = |log: &Log| -> Vec<Line> {
            let lines = log.lines.iter().map(|(_, line)| line.clone());
            lines
                .filter(|line| matches!(line, Line::Test(_) | Line::Reduce(_)))
                .collect()
        };
        assert_eq!(tests(&before.1), tests(&now.1), "{search}");
        assert_eq!(
            (now.0.claim, &now.0.warnings[..]),
            (Claim::OneMinimal, &[][..])
        );
        let confirmed = now.0.confirmed;
        assert_eq!((confirmed.hits, confirmed.tries), (20, 20), "{search}");
        let is_vote = |(_, line): &&(u64, Line)| matches!(line, Line::Check(check) if check.what == What::Vote);
        // Both removals, six times.
        assert_eq!(now.1.lines.iter().filter(is_vote).count(), 12, "{search}");
        assert_eq!(now.0.counts.checks, 4 + 20 + 12, "{search}");
        for jobs in [2, 7] {
            let script = |text: &[u8], _: bool| Ok(Answer::of(test(text)));
            let start = repeating(start_by(INPUT, search));
            let crew = Crew::delayed(&script, 1999);
            let (result, log) = crew.run(jobs, INPUT, start, &mut Options::default());
            assert_eq!(result.expect("a result").claim, Claim::OneMinimal);
            assert_eq!(
                as_of_one(&log),
                as_of_one(&now.2),
                "{search}, {jobs} workers"
            );
        }
    }
}

#[test]
fn a_hang_is_confirmed_by_the_number_of_tests() {
    let confirmed = |class: &str| {
        let key = KeyRecord {
            class: Class(class.to_owned()),
            major: key("held"),
            minor: key("held"),
        };
        let start = repeating(StartLine {
            key: Some(key),
            ..start(TWO)
        });
        let mut oracle = outcomes(subsequence(b"<"));
        let result = run_with(TWO, start, &mut oracle, &mut Options::default()).0;
        let result = result.expect("a result");
        assert_eq!(result.claim, Claim::OneMinimal, "{class}");
        result.confirmed.tries
    };
    assert_eq!(["hang", "oom", "segv"].map(confirmed), [3, 3, 20]);
}

/// Minimizes `input` by `chance`, the share of 1000 runs of a text that fail, at random by `seed`.
fn by_chance(
    seed: u64,
    input: &[u8],
    chance: impl Fn(&[u8]) -> u64,
    repeats: bool,
) -> Option<Minimized> {
    let mut random = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut oracle = answers(|text, _| {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        Ok(Answer::of(match random % 1000 < chance(text) {
            true => Outcome::Fail,
            false => Outcome::Pass,
        }))
    });
    let mut start = start_by(input, "full");
    if repeats {
        start.repeat_claims();
    }
    run_with(input, start, &mut oracle, &mut Options::default())
        .0
        .ok()
}

#[test]
fn a_failure_that_few_runs_miss_is_hardly_ever_called_minimal_wrongly() {
    let input = [&[b'0'; 35][..], b"BUG", &[b'0'; 35]].concat();
    let is_bug = subsequence(b"BUG");
    let chance = |text: &[u8]| match is_bug(text) {
        Outcome::Fail => 900,
        _ => 0,
    };
    let wrong = |repeats: bool| {
        let results = (0..100).filter_map(|seed| by_chance(seed, &input, chance, repeats));
        let claimed = results.filter(|result| result.claim == Claim::OneMinimal);
        claimed.filter(|result| result.text.len() > 3).count()
    };
    let (once, repeated) = (wrong(false), wrong(true));
    assert!(once >= 10 && repeated <= 5, "{once}, {repeated} of 100");
}

/// In how many of a thousand runs a text fails.
type Chance<'a> = &'a dyn Fn(&[u8]) -> u64;

#[test]
fn a_part_that_fails_in_two_of_three_runs_is_called_minimal_once_in_a_thousand_times() {
    // The whole fails each time, its part `<` does not; and a program that fails so on any input.
    let (whole, part) = (subsequence(b"<>"), subsequence(b"<"));
    let of_part = move |text: &[u8]| match (whole(text), part(text)) {
        (Outcome::Fail, _) => 1000,
        (_, Outcome::Fail) => 667,
        _ => 0,
    };
    let chances: [Chance; 2] = [&of_part, &|_| 667];
    let claims = |repeats: bool| {
        chances.map(|chance| {
            let results = (0..1000).filter_map(|seed| by_chance(seed, TWO, chance, repeats));
            let claimed = results.filter(|result| result.claim == Claim::OneMinimal);
            claimed.count()
        })
    };
    let (once, repeated) = (claims(false), claims(true));
    assert!(once.iter().all(|count| *count >= 50), "{once:?} of 1000");
    assert!(
        repeated.iter().all(|count| *count <= 2),
        "{repeated:?} of 1000"
    );
}
