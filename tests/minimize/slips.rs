//! Candidates that run into another bug.

use std::cell::RefCell;

use ddfuzz::delta::Outcome;
use ddfuzz::minimize::log::Log;
use ddfuzz::minimize::{Answer, MinimizeError, Options, Oracle, OracleError};

use crate::crashes::{keys, slip};
use crate::failures::{all_of, without_times};
use crate::memory::Memory;
use crate::scripted::{answers, resume_with, run_with, start};

const INPUT: &[u8] = b"ab1cd2ef3g";

/// The failure needs a and g. A text without a that has b is another bug, by minor keys c or not.
fn script(text: &[u8], _: bool) -> Result<Answer, OracleError> {
    let has = |byte: u8| text.contains(&byte);
    if has(b'a') && has(b'g') {
        return Ok(Answer::of(Outcome::Fail));
    }
    if has(b'a') && has(b'b') {
        let keys = keys("other", if has(b'd') { "with d" } else { "without d" });
        let slip = Some(slip(keys, text));
        return Ok(Answer {
            slip,
            ..Answer::of(Outcome::Unresolved)
        });
    }
    Ok(Answer::of(Outcome::Pass))
}

/// The input of a slip that was handed over, and the index of its test.
type Filed = (Vec<u8>, Option<u64>);

/// Minimizes what is left of a log; gives the slips handed over, with their tests, and the log.
fn slips(left: &[u8]) -> (Vec<Filed>, Vec<u8>) {
    let filed = RefCell::new(Vec::new());
    let on_slip = Box::new(|slip: &ddfuzz::minimize::Slip, test| {
        filed.borrow_mut().push((slip.input.clone(), test));
        Ok(())
    });
    let mut options = Options {
        on_slip,
        ..Options::default()
    };
    let mut oracle = answers(script);
    let (result, log) = resume_with(INPUT, start(INPUT), left, &mut oracle, &mut options);
    let result = result.expect("a result");
    assert_eq!(result.text, b"ag");
    assert_eq!(
        result.slips,
        [keys("other", "with d"), keys("other", "without d")]
    );
    drop(options);
    (filed.into_inner(), log)
}

#[test]
fn a_slip_is_handed_over_once_for_its_keys_with_the_index_of_its_test() {
    let (filed, log) = slips(&[]);
    let lines = without_times(&log);
    let logged = |minor: &str| {
        let minor = keys("other", minor).minor.to_string();
        let first = lines
            .iter()
            .find(|line| line["slip"]["minor"] == minor.as_str());
        first.expect("a slip")["i"].as_u64()
    };
    let tests: Vec<_> = filed.iter().map(|(_, test)| *test).collect();
    assert_eq!(tests, [logged("with d"), logged("without d")]);
}

#[test]
fn a_logged_slip_is_not_handed_over_again_after_a_resume() {
    let (_, log) = slips(&[]);
    let (filed, resumed) = slips(&log[..log.len() - 1]);
    assert_eq!(filed, []);
    assert_eq!(without_times(&resumed), without_times(&log));
}

#[test]
fn a_slip_is_handed_over_before_its_line_is_written() {
    let memory = Memory::new(&[]);
    let seen = memory.clone();
    let on_slip = Box::new(move |_: &ddfuzz::minimize::Slip, test: Option<u64>| {
        let log = Log::parse(&seen.bytes()).expect("a log");
        let tests = log
            .lines
            .iter()
            .filter(|(_, line)| line.kind() == "test")
            .count();
        assert_eq!(
            test,
            Some(tests as u64),
            "the line of the test is not there yet"
        );
        Ok(())
    });
    let mut options = Options {
        on_slip,
        ..Options::default()
    };
    let mut journal =
        ddfuzz::minimize::Journal::begin(start(INPUT), memory.writer()).expect("begun");
    let mut oracle = answers(script);
    ddfuzz::minimize::minimize(INPUT, &mut oracle, &mut journal, &mut options).expect("a result");
}

#[test]
fn a_slip_that_cannot_be_kept_ends_the_minimization() {
    let on_slip = Box::new(|_: &ddfuzz::minimize::Slip, _| Err("no space".into()));
    let mut options = Options {
        on_slip,
        ..Options::default()
    };
    let (result, _) = run_with(INPUT, start(INPUT), &mut answers(script), &mut options);
    let error = result.expect_err("an error");
    assert!(matches!(error, MinimizeError::Callback { .. }));
    assert_eq!(
        error.to_string(),
        "another crash could not be stored: no space"
    );
}

#[test]
fn an_oracle_that_fails_ends_the_minimization_and_it_can_be_resumed() {
    let mut left_to_answer = 9;
    let mut oracle = answers(|text, fresh| {
        left_to_answer -= 1;
        match left_to_answer {
            0 => Err(OracleError::Failed {
                why: "the target is gone".to_owned(),
            }),
            _ => script(text, fresh),
        }
    });
    let oracle: &mut dyn Oracle = &mut oracle;
    let (result, left) = run_with(INPUT, start(INPUT), oracle, &mut Options::default());
    assert!(matches!(result, Err(MinimizeError::Oracle(_))));
    let (_, whole) = slips(&[]);
    let (_, resumed) = slips(&left);
    assert_eq!(without_times(&resumed), without_times(&whole));
}

/// Whether the slips handed over had their record, where only the slip of this number has it.
fn records(with_record: u64) -> Vec<bool> {
    let records = RefCell::new(Vec::new());
    let on_slip = Box::new(|slip: &ddfuzz::minimize::Slip, _| {
        records.borrow_mut().push(slip.crash.is_some());
        Ok(())
    });
    let mut options = Options {
        on_slip,
        ..Options::default()
    };
    let mut slipped = 0;
    let mut oracle = answers(|text, _| {
        let mut answer = Answer::of(all_of(b"178")(text));
        if answer.outcome == Outcome::Unresolved {
            slipped += 1;
            let whole = slip(keys("other", "other"), text);
            let crash = whole.crash.clone().filter(|_| slipped == with_record);
            answer.slip = Some(ddfuzz::minimize::Slip { crash, ..whole });
        }
        Ok(answer)
    });
    let input = b"12345678";
    run_with(input, start(input), &mut oracle, &mut options)
        .0
        .expect("a result");
    drop(options);
    records.into_inner()
}

#[test]
fn a_slip_without_a_record_is_followed_by_one_that_has_it_and_by_no_other() {
    assert_eq!(records(3), [false, true]);
    assert_eq!(records(1), [true]);
}
