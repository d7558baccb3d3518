//! Maximizing and isolating: the book's runs, claims, logs.

use std::cell::RefCell;
use std::sync::atomic::{AtomicBool, Ordering};

use ddfuzz::delta::{Caching, Outcome};
use ddfuzz::minimize::isolate::{
    IsolationWarning, Side, Subject, isolate, replay_sides, verify_sides,
};
use ddfuzz::minimize::log::{Goal, Log, LogError, Units};
use ddfuzz::minimize::{Answer, Claim, Journal, MinimizeError, Options, Process};

use crate::between::Case;
use crate::crashes::{keys, slip};
use crate::debuggingbook::runs;
use crate::failures::{all_of, subsequence, without_times};
use crate::memory::Memory;
use crate::scripted::{answers, outcomes};

#[test]
fn the_inputs_of_the_book_are_run_in_their_order_to_its_results() {
    for run in runs(&["dd-maximize", "dd-isolate"]) {
        let goal = match run.algorithm.as_str() {
            "dd-maximize" => Goal::Maximize,
            _ => Goal::Isolate,
        };
        let case = Case::of(goal, run.input.as_bytes());
        let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).expect("ASCII");
        let mut oracle = outcomes(|input: &[u8]| run.predicate.test(&text(input)));
        let (isolated, _) = case.run(&mut oracle);
        let isolated = isolated.expect("a result");
        // The axiom aside, which the book tests first.
        let expected: Vec<&str> = run.tests[2..].iter().map(|(input, _)| &**input).collect();
        let asked: Vec<String> = oracle.asked.iter().map(|input| text(input)).collect();
        assert_eq!(asked, expected, "{}", run.algorithm);
        assert_eq!(isolated.counts.executed, expected.len() as u64);
        assert_eq!(Some(text(&isolated.passing)), run.pass);
        assert_eq!(Some(text(&isolated.failing)), run.fail);
        let removed = isolated
            .difference
            .iter()
            .flat_map(|one| one.removed.clone());
        assert_eq!(Some(text(&removed.collect::<Vec<u8>>())), run.difference);
        assert_ne!(isolated.claim, Claim::BestSoFar);
    }
}

#[test]
fn the_select_tag_of_mozilla_is_isolated_to_its_first_letter() {
    // The line of the page that Mozilla could not print; `<SELECT>` is enough.
    let tag = b"<SELECT NAME=\"priority\" MULTIPLE SIZE=7>";
    let test = |text: &[u8]| {
        let begins = text.windows(7).position(|seven| seven == b"<SELECT");
        match begins.map(|at| text[at + 7..].contains(&b'>')) {
            Some(true) => Outcome::Fail,
            _ => Outcome::Pass,
        }
    };
    let (isolated, log) = Case::of(Goal::Isolate, tag).isolated(&test);
    assert_eq!(isolated.claim, Claim::OneMinimalDifference);
    assert_eq!(isolated.failing, b"<SELECT NAty\" MULTIPLE SIZE=7>");
    assert_eq!(isolated.passing, &isolated.failing[1..]);
    assert!(isolated.counts.executed <= 2 * 6, "2 log2 40 tests (A.19)");
    assert_eq!(isolated.difference[0].removed, b"<");
    let log = Log::parse(&log).expect("a log");
    let verified = verify_sides(b"", tag, &log, &mut outcomes(test), |_| ());
    assert!(verified.expect("verified").holds());
}

#[test]
fn only_the_edit_that_matters_is_left_between_two_inputs() {
    let passing = b"int a = 1;\nint b = 2;\nreturn a + b;\n";
    let failing = b"int a = 7;\nint b = 0;\nreturn a / b; // no\n";
    let divides_by_zero = |text: &[u8]| {
        let has = |part: &[u8]| text.windows(part.len()).any(|window| window == part);
        match (has(b"b = 0"), has(b"a / b")) {
            (true, true) => Outcome::Fail,
            _ => Outcome::Pass,
        }
    };
    let case = Case::edits(passing, failing);
    let (isolated, log) = case.isolated(&divides_by_zero);
    assert_eq!(isolated.claim, Claim::OneMinimalDifference);
    let [one] = &isolated.difference[..] else {
        panic!("one place: {:?}", isolated.difference);
    };
    let changed = (&one.removed[..], &one.inserted[..]);
    assert!([(&b"2"[..], &b"0"[..]), (b"+", b"/")].contains(&changed));
    assert_eq!(passing[one.at.clone()], one.removed);
    let log = Log::parse(&log).expect("a log");
    let replayed = replay_sides(passing, failing, &log).expect("it holds");
    assert_eq!(replayed.isolated, Some(isolated));
}

#[test]
fn bytes_of_edits_are_finer_than_edits() {
    let (passing, failing) = (b"SELECT 1", b"SELECT <<many things> 1");
    let test = |text: &[u8]| match text.iter().filter(|byte| **byte == b'<').count() {
        2 => Outcome::Fail,
        _ => Outcome::Pass,
    };
    let case = Case::new(Goal::Isolate, Units::EditBytes, passing, failing);
    let (isolated, _) = case.isolated(&test);
    assert_eq!(isolated.difference.len(), 1);
    assert_eq!(isolated.difference[0].inserted, b"<");
    let (edits, _) = Case::edits(passing, failing).isolated(&test);
    assert_eq!(edits.difference[0].inserted, b"<<many things> ");
}

#[test]
fn half_an_axiom_is_an_error_and_nothing_is_searched() {
    for goal in [Goal::Maximize, Goal::Isolate] {
        let case = Case::of(goal, b"abc");
        let mut passes = outcomes(|_: &[u8]| Outcome::Pass);
        let (result, _) = case.run(&mut passes);
        assert!(matches!(
            result,
            Err(MinimizeError::NotFailing { tries: 3, .. })
        ));
        let mut fails = outcomes(|_: &[u8]| Outcome::Fail);
        let (result, _) = case.run(&mut fails);
        let Err(MinimizeError::NotPassing { what }) = result else {
            panic!("{result:?}");
        };
        assert_eq!(what, "the empty input");
        assert_eq!(fails.asked.len(), 0);
        assert_eq!(fails.asked_fresh.len(), 4);
    }
    let (result, _) = Case::edits(b"x", b"xy").run(&mut outcomes(|_: &[u8]| Outcome::Fail));
    let error = result.expect_err("the passing input fails").to_string();
    assert!(error.contains("the passing input fails"), "{error}");
}

#[test]
fn unresolved_outcomes_leave_several_deltas_with_a_warning() {
    let (isolated, _) = Case::of(Goal::Isolate, b"12345678").isolated(&all_of(b"178"));
    assert_eq!(isolated.deltas_left, 3);
    assert_eq!(isolated.claim, Claim::OneMinimalDifference);
    assert_eq!(isolated.warnings, [IsolationWarning::Unresolved(3)]);
    let (maximal, _) = Case::of(Goal::Maximize, b"12345678").isolated(&subsequence(b"36"));
    assert_eq!(maximal.passing.len(), 7);
    assert_eq!(maximal.warnings, []);
}

#[test]
fn a_passing_end_that_is_unresolved_supports_no_claim() {
    let test = |text: &[u8]| match text {
        b"ab" => Outcome::Fail,
        _ => Outcome::Unresolved,
    };
    for goal in [Goal::Maximize, Goal::Isolate] {
        let (isolated, log) = Case::of(goal, b"ab").isolated(&test);
        assert_eq!(isolated.claim, Claim::BestSoFar);
        assert!(isolated.warnings.contains(&IsolationWarning::NotPassing));
        let log = Log::parse(&log).expect("a log");
        let verified = verify_sides(b"", b"ab", &log, &mut outcomes(test), |_| ());
        assert!(verified.expect("verified").holds(), "it claims no more");
    }
}

/// What passes does so in a process that earlier tests had run in, unless it is a fresh one.
fn shared(test: impl Fn(&[u8]) -> Outcome, text: &[u8], fresh: bool) -> Answer {
    let answer = Answer::of(test(text));
    match answer.outcome {
        Outcome::Pass if !fresh => Answer {
            process: Process::Shared,
            ..answer
        },
        _ => answer,
    }
}

#[test]
fn what_passed_in_a_shared_process_is_proven_in_a_fresh_one() {
    let test = subsequence(b"36");
    let case = Case::of(Goal::Isolate, b"12345678");
    let mut oracle = answers(|text: &[u8], fresh| Ok(shared(&test, text, fresh)));
    let (isolated, _) = case.run(&mut oracle);
    let isolated = isolated.expect("a result");
    assert_eq!(isolated.claim, Claim::OneMinimalDifference);
    // Three runs each of the input, the failing and the passing end; the axiom; one proof.
    assert_eq!(oracle.asked_fresh.len(), 3 + 3 + 3 + 1 + 1);
    assert_eq!(
        oracle.asked_fresh[4], isolated.passing,
        "the failing end without the delta"
    );
}

#[test]
fn a_proof_that_comes_out_otherwise_moves_an_end() {
    // In the shared process nothing passes but the empty input; in a fresh one all does.
    let mut oracle = answers(|text: &[u8], fresh| {
        Ok(match (text, fresh) {
            (b"abcd", _) => Answer::of(Outcome::Fail),
            (b"", _) | (_, true) => Answer::of(Outcome::Pass),
            _ => Answer {
                process: Process::Shared,
                ..Answer::of(Outcome::Unresolved)
            },
        })
    });
    let case = Case::of(Goal::Maximize, b"abcd");
    let (isolated, log) = case.run(&mut oracle);
    let isolated = isolated.expect("a result");
    assert_eq!(isolated.passing.len(), 3);
    assert_eq!(isolated.claim, Claim::OneMaximal);
    let log = Log::parse(&log).expect("a log");
    assert!(replay_sides(b"", b"abcd", &log).is_ok());
}

#[test]
fn predictors_answer_without_a_run_and_prove_nothing() {
    let needs = |length: usize| {
        move |text: &[u8]| match text.len() {
            have if have >= length => Outcome::Fail,
            _ => Outcome::Pass,
        }
    };
    let input: Vec<u8> = (b'a'..=b'z').collect();
    let ordered = Case::of(Goal::Isolate, &input).with(|record| record.ordered = true);
    let (isolated, log) = ordered.isolated(&needs(10));
    assert_eq!(isolated.failing, &input[..10]);
    assert_eq!(isolated.passing, &input[..9]);
    assert_eq!(isolated.claim, Claim::OneMinimalDifference);
    assert!(isolated.counts.predicted > 0);
    let log = Log::parse(&log).expect("a log");
    assert!(replay_sides(b"", &input, &log).is_ok());

    let test = all_of(b"cx");
    let plain = Case::of(Goal::Maximize, &input);
    let monotone = plain.clone().with(|record| record.monotone = true);
    let (one, _) = plain.isolated(&test);
    let (other, _) = monotone.isolated(&test);
    assert_eq!(one.passing, other.passing);
    assert!(other.counts.executed <= one.counts.executed);
    assert_eq!(other.claim, Claim::OneMaximal);
}

#[test]
fn a_text_that_ends_in_two_ways_is_no_ground_for_a_claim() {
    let mut runs = 0;
    // "34" is asked as a part and as what is left without the other one.
    let mut script = answers(|text, _| {
        runs += u64::from(text == b"34");
        Ok(Answer::of(match text {
            b"1234" => Outcome::Fail,
            b"" => Outcome::Pass,
            b"34" if runs > 1 => Outcome::Fail,
            _ => Outcome::Unresolved,
        }))
    });
    let mut case = Case::of(Goal::Isolate, b"1234");
    case.start.cache = Caching::Off;
    let (isolated, _) = case.run(&mut script);
    let isolated = isolated.expect("a result");
    assert!(runs > 1);
    assert_eq!(isolated.claim, Claim::BestSoFar);
    let warning = IsolationWarning::Contradicted;
    assert!(isolated.warnings.contains(&warning), "{isolated:?}");
}

#[test]
fn a_slip_is_handed_over_before_its_line_and_only_once() {
    let script = |text: &[u8], _: bool| {
        let has = |byte| text.contains(&byte);
        Ok(match (has(b'1'), has(b'8')) {
            (true, true) => Answer::of(Outcome::Fail),
            (true, false) => Answer {
                slip: Some(slip(keys("other", "way"), text)),
                ..Answer::of(Outcome::Unresolved)
            },
            _ => Answer::of(Outcome::Pass),
        })
    };
    let filed = RefCell::new(Vec::new());
    let mut options = Options {
        on_slip: Box::new(|slip, test| {
            filed.borrow_mut().push((slip.input.clone(), test));
            Ok(())
        }),
        ..Options::default()
    };
    let case = Case::of(Goal::Isolate, b"12345678");
    let (isolated, _) = case.go_on(&[], &mut answers(script), &mut options);
    assert_eq!(isolated.expect("a result").slips, [keys("other", "way")]);
    drop(options);
    assert_eq!(filed.into_inner(), [(b"1234".to_vec(), Some(0))]);
}

#[test]
fn both_ends_are_handed_over_as_they_move() {
    let case = Case::of(Goal::Isolate, b"12345678");
    let memory = Memory::new(&[]);
    let mut journal = Journal::begin(case.start.clone(), memory.writer()).expect("begun");
    let seen = RefCell::new(Vec::new());
    let on_side = Box::new(|side, text: &[u8]| {
        seen.borrow_mut().push((side, text.to_vec()));
        Ok(())
    });
    let mut oracle = outcomes(subsequence(b"36"));
    let mut options = Options::default();
    let found = isolate(
        &Subject::new(Units::Bytes, b"", b"12345678"),
        &mut oracle,
        &mut journal,
        &mut options,
        on_side,
    );
    let found = found.expect("a result");
    let seen = seen.into_inner();
    let last = |wanted: Side| {
        let of_side = |(side, text): &(Side, Vec<u8>)| (*side == wanted).then(|| text.clone());
        seen.iter().rev().find_map(of_side)
    };
    assert_eq!(last(Side::Passing), Some(found.passing));
    assert_eq!(last(Side::Failing), Some(found.failing));
}

#[test]
fn a_log_that_was_tampered_with_or_is_of_other_inputs_is_refused() {
    let case = Case::edits(b"a-b-c-d", b"a+b+c+d");
    let test = |text: &[u8]| match text.iter().filter(|byte| **byte == b'+').count() {
        3 => Outcome::Fail,
        _ => Outcome::Pass,
    };
    let (_, log) = case.isolated(&test);
    let text = String::from_utf8(log).expect("UTF-8");
    let tampered = text.replacen(
        "\"outcome\":\"PASS\",\"source\"",
        "\"outcome\":\"FAIL\",\"source\"",
        1,
    );
    assert_ne!(text, tampered);
    let parsed = Log::parse(tampered.as_bytes()).expect("lines");
    let refused = replay_sides(&case.passing, &case.failing, &parsed);
    assert!(matches!(
        refused,
        Err(MinimizeError::Log(LogError::Disagrees { .. }))
    ));
    let whole = Log::parse(text.as_bytes()).expect("a log");
    for (passing, failing) in [
        (&b"a-b-c-e"[..], &case.failing[..]),
        (&case.passing, b"a+b"),
    ] {
        let refused = replay_sides(passing, failing, &whole);
        assert!(matches!(
            refused,
            Err(MinimizeError::Log(LogError::Mismatch { .. }))
        ));
    }
    let other = case.clone().with(|record| record.monotone = true);
    let memory = Memory::new(text.as_bytes());
    let journal = Journal::go_on(whole, other.start, memory.writer());
    assert!(matches!(
        journal.err(),
        Some(LogError::Mismatch { what: "difference" })
    ));
}

#[test]
fn a_search_that_is_stopped_goes_on_where_it_was() {
    let case = Case::of(Goal::Isolate, b"12345678");
    let (expected, whole) = case.isolated(&subsequence(b"36"));
    let stop = AtomicBool::new(false);
    let mut oracle = answers(|text: &[u8], _| {
        stop.store(text == b"5678", Ordering::Relaxed);
        Ok(Answer::of(subsequence(b"36")(text)))
    });
    let mut options = Options {
        stop: Some(&stop),
        ..Options::default()
    };
    let (stopped, left) = case.go_on(&[], &mut oracle, &mut options);
    let Err(MinimizeError::Interrupted { size, executed, .. }) = stopped else {
        panic!("{stopped:?}");
    };
    assert_eq!((size, executed), (8, 2));
    let mut oracle = outcomes(subsequence(b"36"));
    let (result, log) = case.go_on(&left, &mut oracle, &mut Options::default());
    assert_eq!(result.expect("a result"), expected);
    assert_eq!(without_times(&log), without_times(&whole));
    assert_eq!(
        oracle.asked.len() as u64,
        expected.counts.executed - executed
    );
}
