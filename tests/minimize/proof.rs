//! The proof: what the search's own outcomes leave open.

use ddfuzz::delta::Outcome;
use ddfuzz::minimize::log::{Line, Log, Phase, Source};
use ddfuzz::minimize::{Answer, Claim, CutOff, Kind, Oracle, OracleError, Process, SEARCHES};

use crate::crew::as_of_one;
use crate::failures::{all_of, odd, subsequence, without_times};
use crate::scripted::{answers, outcomes, resume_with, run, run_with, start, start_by};

const INPUT: &[u8] = b"ab<cd>ef";

/// Without `<` the target hangs in the fast way of execution; `fresh_fails` says what it does in a
/// fresh process with ten times the patience.
fn hanging(
    fresh: impl Fn(&[u8]) -> Answer,
) -> impl FnMut(&[u8], bool) -> Result<Answer, OracleError> {
    move |text, in_fresh| {
        let hangs = text == b">" || text == b"<";
        Ok(match (hangs, in_fresh) {
            (true, false) => cut_off(),
            (true, true) => fresh(text),
            (false, _) => Answer::of(subsequence(b"<>")(text)),
        })
    }
}

fn cut_off() -> Answer {
    Answer {
        cut_off: Some(CutOff::Time),
        ..Answer::of(Outcome::Unresolved)
    }
}

#[test]
fn a_time_out_proves_nothing_and_is_tested_again_in_a_fresh_process() {
    let mut oracle = answers(hanging(|_| Answer::of(Outcome::Pass)));
    let (result, log) = run(INPUT, &mut oracle);
    let result = result.expect("a result");
    assert_eq!(
        (result.text.as_slice(), result.claim),
        (b"<>".as_slice(), Claim::OneMinimal)
    );
    // The axiom, then the proof.
    let fresh = [b"".to_vec(), b">".to_vec(), b"<".to_vec()];
    assert_eq!(oracle.asked_fresh[..3], fresh);
    let log = Log::parse(&log).expect("a log");
    let proof: Vec<_> = log
        .lines
        .iter()
        .filter_map(|(_, line)| match line {
            Line::Test(test) if test.phase == Some(Phase::Proof) => Some(test),
            _ => None,
        })
        .collect();
    assert_eq!(proof.len(), 2);
    assert!(proof.iter().all(|test| test.source == Source::Run));
}

/// What passes does so in a process that earlier tests had run in, unless it is a fresh one.
fn shared(text: &[u8], fresh: bool) -> Answer {
    let answer = Answer::of(subsequence(b"<>")(text));
    match answer.outcome {
        Outcome::Fail => answer,
        _ if fresh => answer,
        _ => Answer {
            process: Process::Shared,
            ..answer
        },
    }
}

#[test]
fn what_passed_in_a_shared_process_is_proved_in_a_fresh_one() {
    let mut oracle = answers(|text, fresh| Ok(shared(text, fresh)));
    let (result, log) = run(INPUT, &mut oracle);
    let result = result.expect("a result");
    assert_eq!(
        (result.text.as_slice(), result.claim),
        (b"<>".as_slice(), Claim::OneMinimal)
    );
    let fresh = [b"".to_vec(), b">".to_vec(), b"<".to_vec()];
    assert_eq!(oracle.asked_fresh[..3], fresh);
    let log = Log::parse(&log).expect("a log");
    let shared = |line: &Line| matches!(line, Line::Test(test) if test.process == Process::Shared);
    assert!(log.lines.iter().any(|(_, line)| shared(line)));
    let Some((_, Line::End(end))) = log.lines.last() else {
        panic!("no end")
    };
    assert_eq!((end.proved.done, end.proved.of), (2, 2));
}

#[test]
fn what_a_shared_process_hid_is_found_by_the_proof() {
    // Left over from earlier tests, something keeps `<` alone from failing.
    let mut oracle = answers(|text, fresh| match text {
        b"<" if fresh => Ok(Answer::of(Outcome::Fail)),
        _ => Ok(shared(text, fresh)),
    });
    let (result, _) = run(INPUT, &mut oracle);
    let result = result.expect("a result");
    assert_eq!(
        (result.text.as_slice(), result.claim),
        (b"<".as_slice(), Claim::OneMinimal)
    );
}

#[test]
fn a_time_out_with_all_patience_leaves_the_claim_unmade() {
    let mut oracle = answers(hanging(|_| cut_off()));
    let (result, _) = run(INPUT, &mut oracle);
    let result = result.expect("a result");
    assert_eq!(
        (result.text.as_slice(), result.claim),
        (b"<>".as_slice(), Claim::BestSoFar)
    );
    assert_eq!((result.proved.done, result.proved.of), (0, 2));
}

#[test]
fn a_proof_test_that_fails_is_a_reduction() {
    let mut oracle = answers(|text, fresh| match text {
        b"<" if fresh => Ok(Answer::of(Outcome::Fail)),
        _ => hanging(|_| Answer::of(Outcome::Pass))(text, fresh),
    });
    let (result, log) = run(INPUT, &mut oracle);
    let result = result.expect("a result");
    assert_eq!(
        (result.text.as_slice(), result.claim),
        (b"<".as_slice(), Claim::OneMinimal)
    );
    let lines = without_times(&log);
    let last = lines
        .iter()
        .rfind(|line| line["kind"] == "reduce")
        .expect("a reduction");
    assert_eq!(last["rule"], "proof");
}

#[test]
fn a_proof_cut_off_anywhere_is_gone_on_with() {
    let script = || {
        hanging(|text| {
            Answer::of(if text == b"<" {
                Outcome::Fail
            } else {
                Outcome::Pass
            })
        })
    };
    let (result, whole) = run(INPUT, &mut answers(script()));
    let result = result.expect("a result");
    for cut in (0..=whole.len()).step_by(7) {
        let (again, log) = resume_with(
            INPUT,
            start(INPUT),
            &whole[..cut],
            &mut answers(script()),
            &mut Default::default(),
        );
        assert_eq!(again.expect("a result"), result);
        assert_eq!(without_times(&log), without_times(&whole));
    }
}

/// An oracle that takes any number of candidates in one request, and counts the requests.
struct Several<O>(O, usize);

impl<O: Oracle> Oracle for Several<O> {
    fn ask(&mut self, candidate: &[u8], kind: Kind) -> Result<Answer, OracleError> {
        self.0.ask(candidate, kind)
    }

    fn ask_fresh(&mut self, candidate: &[u8], kind: Kind) -> Result<Answer, OracleError> {
        self.0.ask_fresh(candidate, kind)
    }

    fn takes_several(&self) -> bool {
        true
    }

    fn ask_several(&mut self, candidates: &[(&[u8], Kind)]) -> Result<Vec<Answer>, OracleError> {
        self.1 += 1;
        let mut answers = Vec::<Answer>::new();
        for (candidate, kind) in candidates {
            let last = answers.last().map(|answer| answer.outcome);
            if last.is_none_or(|last| last == Outcome::Pass) {
                answers.push(self.ask(candidate, *kind)?);
            }
        }
        Ok(answers)
    }

    fn ask_fresh_several(
        &mut self,
        candidates: &[(&[u8], Kind)],
    ) -> Result<Vec<Answer>, OracleError> {
        self.1 += 1;
        let each = candidates.iter();
        each.map(|(candidate, kind)| self.ask_fresh(candidate, *kind))
            .collect()
    }
}

#[test]
fn confirmations_in_one_request_with_the_proof_are_of_the_result() {
    // In the shared process `a` passes, in a fresh one it fails, so that the proof finds it. Nothing
    // is left to prove of it then, as the empty input is known to pass.
    let answers = answers(|text, fresh| {
        let fails = text == b"ab" || fresh && text == b"a";
        Ok(Answer {
            process: if fresh { Process::Own } else { Process::Shared },
            ..Answer::of(if fails { Outcome::Fail } else { Outcome::Pass })
        })
    });
    let mut oracle = Several(answers, 0);
    let (result, _) = run(b"ab", &mut oracle);
    let result = result.expect("a result");
    assert_eq!(result.text, b"a");
    let asked = &oracle.0.asked_fresh;
    assert_eq!(asked[asked.len() - 3..], [b"a", b"a", b"a"]);
}

#[test]
fn tests_in_one_request_are_those_that_are_asked_one_by_one() {
    let input = b"12345678abcdefgh";
    type Test<'a> = &'a dyn Fn(&[u8]) -> Outcome;
    let shapes: [Test<'_>; 3] = [&all_of(b"17c"), &subsequence(b"36d"), &odd(7, input)];
    for search in SEARCHES {
        for test in shapes {
            let run = |oracle: &mut dyn Oracle| {
                let (result, log) = run_with(
                    input,
                    start_by(input, search),
                    oracle,
                    &mut Default::default(),
                );
                (result.expect("a result"), as_of_one(&log))
            };
            let mut single = outcomes(test);
            let (alone, log) = run(&mut single);
            let mut several = Several(outcomes(test), 0);
            let (result, log_of_several) = run(&mut several);
            assert_eq!((result.text, result.claim), (alone.text, alone.claim));
            assert_eq!(log_of_several, log, "{search}");
            // No test of the search is made in vain.
            assert_eq!(several.0.asked, single.asked, "{search}");
            let tests = single.asked.len() + single.asked_fresh.len();
            assert!(several.1 < tests, "{} of {tests}, {search}", several.1);
        }
    }
}
