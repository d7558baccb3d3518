//! Where a minimization stands, as it tells.

use std::cell::RefCell;
use std::time::Duration;

use ddfuzz::delta::{Outcome, Rule};
use ddfuzz::minimize::log::StartLine;
use ddfuzz::minimize::{Answer, CutOff, MinimizePhase, MinimizeStatus, Options, Proved, Runs};

use crate::failures::subsequence;
use crate::scripted::{answers, run_with, start};

const INPUT: &[u8] = b"ab<cd>ef";

/// Where things stood, told behind lines so far apart that each is told of.
fn told(answer: impl FnMut(&[u8]) -> Answer) -> Vec<MinimizeStatus> {
    told_from(start(INPUT), answer)
}

/// The same of a minimization that begins its log with this line.
fn told_from(begin: StartLine, mut answer: impl FnMut(&[u8]) -> Answer) -> Vec<MinimizeStatus> {
    let told = RefCell::new(Vec::new());
    let mut options = Options {
        on_status: Some(Box::new(|standing| told.borrow_mut().push(*standing))),
        ..Options::default()
    };
    let mut oracle = answers(|text, _| {
        std::thread::sleep(Duration::from_millis(101));
        Ok(answer(text))
    });
    run_with(INPUT, begin, &mut oracle, &mut options)
        .0
        .expect("a result");
    drop(options);
    told.into_inner()
}

#[test]
fn size_tests_and_what_asks_are_told_from_beginning_to_end() {
    let told = told(|text| Answer::of(subsequence(b"<>")(text)));
    let first = told[0];
    assert_eq!(
        (first.phase, first.size, first.executed),
        (MinimizePhase::Baseline, 8, 0)
    );
    assert!(told.is_sorted_by(|one, next| one.executed <= next.executed));
    assert!(told.is_sorted_by(|one, next| one.size >= next.size));
    let searching = |standing: &&MinimizeStatus| {
        standing.phase == MinimizePhase::Search(Some(Rule::Complement))
    };
    assert!(told.iter().any(|standing| searching(&standing)));
    let last = told.last().expect("the last");
    assert_eq!((last.phase, last.size), (MinimizePhase::Confirm, 2));
    assert_eq!(last.proved, Proved { done: 2, of: 2 });
}

#[test]
fn the_runs_that_confirm_the_result_are_counted_with_those_of_its_removals() {
    let mut begin = start(INPUT);
    begin.repeat_claims();
    let told = told_from(begin, |text| Answer::of(subsequence(b"<>")(text)));
    let runs_of = |phase| {
        let of_phase = told.iter().filter(move |standing| standing.phase == phase);
        of_phase.map(|standing| standing.runs.expect("a number of runs"))
    };
    let baseline: Vec<Runs> = runs_of(MinimizePhase::Baseline).collect();
    assert_eq!(baseline[0], Runs { done: 0, of: 4 });
    let confirming: Vec<Runs> = runs_of(MinimizePhase::Confirm).collect();
    let last = confirming.last().expect("the last");
    assert!(last.done > 3, "removals are run again: {last:?}");
    assert_eq!(last.done, last.of);
    assert!(confirming.is_sorted_by(|one, next| one.done <= next.done));
    assert!(confirming.iter().all(|runs| runs.of == last.of));
    assert!(confirming[0].done < last.done, "{confirming:?}");
    let searching = |phase| matches!(phase, MinimizePhase::Search(_) | MinimizePhase::Proof);
    let mut in_search = told.iter().filter(|standing| searching(standing.phase));
    assert!(in_search.all(|standing| standing.runs.is_none()));
}

#[test]
fn what_is_cut_off_in_the_proof_is_cannot_tell_as_proved() {
    let told = told(|text| match text {
        b"<" => Answer {
            cut_off: Some(CutOff::Time),
            ..Answer::of(Outcome::Unresolved)
        },
        _ => Answer::of(subsequence(b"<>")(text)),
    });
    assert!(
        told.iter()
            .any(|standing| standing.phase == MinimizePhase::Proof)
    );
    let last = told.last().expect("the last");
    assert_eq!(last.proved, Proved { done: 1, of: 2 });
    assert!(
        told.iter()
            .all(|standing| standing.proved.done < 2 || standing.size > 2)
    );
}
