//! A log that was cut off anywhere leads to the same result.

use std::cell::RefCell;

use ddfuzz::minimize::Options;
use proptest::prelude::*;

use crate::failures::{all_of, odd, without_times};
use crate::fixed;
use crate::scripted::{outcomes, resume_with, run, start};

#[test]
fn a_log_cut_at_any_byte_resumes_to_the_same_log() {
    let input = b"12345678";
    let test = all_of(b"178");
    let (result, whole) = run(input, &mut outcomes(test.clone()));
    let result = result.expect("a result");
    for cut in 0..=whole.len() {
        let mut oracle = outcomes(test.clone());
        let mut options = Options::default();
        let (resumed, log) = resume_with(
            input,
            start(input),
            &whole[..cut],
            &mut oracle,
            &mut options,
        );
        assert_eq!(resumed.expect("a result"), result, "cut at {cut}");
        assert_eq!(without_times(&log), without_times(&whole), "cut at {cut}");
    }
}

#[test]
fn nothing_is_run_again_after_the_end() {
    let input = b"12345678";
    let (_, whole) = run(input, &mut outcomes(all_of(b"178")));
    let mut oracle = outcomes(all_of(b"178"));
    let best = RefCell::new(Vec::new());
    let on_reduce = Box::new(|text: &[u8]| {
        best.borrow_mut().push(text.to_vec());
        Ok(())
    });
    let mut options = Options {
        on_reduce,
        ..Options::default()
    };
    let (_, log) = resume_with(input, start(input), &whole, &mut oracle, &mut options);
    assert_eq!(oracle.asked.len() + oracle.asked_fresh.len(), 0);
    assert_eq!(log, whole);
    drop(options);
    assert_eq!(
        best.into_inner(),
        [b"178"],
        "the best so far is handed over once"
    );
}

proptest! {
    #![proptest_config(fixed::seed(1999))]

    #[test]
    fn a_log_cut_twice_at_random_resumes_to_the_same_result(
        input in prop::collection::vec(prop::sample::select(b"aabc".as_slice()), 1..32),
        seed in any::<u64>(),
        cuts in prop::array::uniform2(any::<prop::sample::Index>()),
    ) {
        let test = odd(seed, &input);
        let (result, whole) = run(&input, &mut outcomes(test.clone()));
        let result = result.expect("a result");
        let mut log = whole.clone();
        for cut in cuts {
            let left = log[..cut.index(log.len() + 1)].to_vec();
            let mut oracle = outcomes(test.clone());
            let mut options = Options::default();
            let (resumed, again) =
                resume_with(&input, start(&input), &left, &mut oracle, &mut options);
            prop_assert_eq!(&resumed.expect("a result"), &result);
            log = again;
        }
        prop_assert_eq!(without_times(&log), without_times(&whole));
    }
}
