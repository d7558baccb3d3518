//! The last normal form: of a small result each byte that does not matter becomes `0`, and where a
//! budget ends before that is known, the result says so.

use ddfuzz::delta::{Full, Outcome};
use ddfuzz::minimize::{Claim, Minimized, Options, Warning};

use crate::scripted::{outcomes, run_with, start_by};

/// Fails where at least 39 bytes are left, the first of them an `N`, and with the words in order.
fn noisy(text: &[u8]) -> Outcome {
    let mut rest = text.iter();
    let has_words = b"N(+2)C3%".iter().all(|byte| rest.any(|one| one == byte));
    match text.len() >= 39 && text[0] == b'N' && has_words {
        true => Outcome::Fail,
        false => Outcome::Pass,
    }
}

const INPUT: &[u8] = b"NAME NAME REF 1PR ((+2)C3%pthread_getcpuclockid and so on and on and on";

fn minimized(input: &[u8], budget: Option<u64>, test: fn(&[u8]) -> Outcome) -> Minimized {
    let mut options = Options {
        budget_tests: budget,
        ..Options::default()
    };
    let start = start_by(input, "full");
    let (result, _) = run_with(input, start, &mut outcomes(test), &mut options);
    result.expect("a result")
}

#[test]
fn no_byte_of_a_small_result_keeps_a_value_that_does_not_matter() {
    let result = minimized(INPUT, None, noisy);
    assert_eq!((result.text.len(), result.claim), (39, Claim::OneMinimal));
    assert_eq!(result.warnings, []);
    for at in 0..result.text.len() {
        let mut other = result.text.clone();
        other[at] = b'0';
        let shown = String::from_utf8_lossy(&result.text);
        assert!(
            result.text[at] == b'0' || noisy(&other) == Outcome::Pass,
            "{at} of {shown}"
        );
    }
    let zeros = result.text.iter().filter(|byte| **byte == b'0').count();
    assert_eq!(zeros, 39 - b"N(+2)C3%".len());
}

#[test]
fn a_budget_that_ends_among_the_values_is_told() {
    let whole = minimized(INPUT, None, noisy);
    let mut told = 0;
    for budget in 1..whole.counts.executed {
        let result = minimized(INPUT, Some(budget), noisy);
        let values = |warning: &Warning| matches!(warning, Warning::Values { .. });
        let tells = result.warnings.iter().any(values);
        let is_proved = result.claim == Claim::OneMinimal;
        assert!(is_proved || !tells, "{budget}: {:?}", result.warnings);
        // What is proved, and not told of, has its last form.
        assert!(!is_proved || tells || result.text == whole.text, "{budget}");
        told += u64::from(tells);
    }
    assert!(
        told > 0,
        "no budget of {} ended there",
        whole.counts.executed
    );
}

#[test]
fn a_large_result_keeps_its_values() {
    /// Fails only as it is.
    fn needed(text: &[u8]) -> Outcome {
        match text.len() > Full::SMALL && text.windows(2).all(|pair| pair[0] != pair[1]) {
            true => Outcome::Fail,
            false => Outcome::Pass,
        }
    }
    let input: Vec<u8> = (0..=Full::SMALL).map(|at| b"ab"[at % 2]).collect();
    let result = minimized(&input, None, needed);
    assert_eq!(result.text, input);
    assert_eq!(result.warnings, []);
    // One test for each byte, and a few more: their values are not tried.
    assert!(result.counts.executed < 200, "{:?}", result.counts);
}
