//! What ddmin guarantees, on random failures, unresolved outcomes among them.

use ddfuzz::delta::{Ddmin, Outcome};
use proptest::prelude::*;

use crate::random::failures;
use crate::reference;
use crate::trace::run;

proptest! {
    #![proptest_config(crate::fixed::seed())]

    #[test]
    fn the_result_fails_and_is_a_1_minimal_subsequence(failure in failures()) {
        let trace = run(Ddmin::new(failure.units), |kept| failure.test(kept));
        prop_assert_eq!(failure.test(&trace.result), Outcome::Fail);
        prop_assert!(trace.result.windows(2).all(|pair| pair[0] < pair[1]));
        for gone in 0..trace.result.len() {
            let mut fewer = trace.result.clone();
            fewer.remove(gone);
            prop_assert_ne!(failure.test(&fewer), Outcome::Fail, "A.12");
        }
    }

    #[test]
    fn the_bound_on_tests_holds(failure in failures()) {
        let trace = run(Ddmin::new(failure.units), |kept| failure.test(kept));
        prop_assert!(trace.tests.len() <= failure.units * failure.units + 3 * failure.units);
    }

    #[test]
    fn the_machine_tests_what_the_definition_tests_in_the_same_order(failure in failures()) {
        let trace = run(Ddmin::new(failure.units), |kept| failure.test(kept));
        let defined = reference::ddmin(failure.units, &|kept: &[usize]| failure.test(kept));
        prop_assert_eq!(trace.tests, defined.tests);
        prop_assert_eq!(trace.result, defined.result);
    }

    #[test]
    fn the_proof_lies_in_the_tests_themselves(failure in failures()) {
        let trace = run(Ddmin::new(failure.units), |kept| failure.test(kept));
        prop_assume!(trace.result.len() > 1);
        for gone in 0..trace.result.len() {
            let mut fewer = trace.result.clone();
            fewer.remove(gone);
            prop_assert!(trace.tests.iter().any(|(kept, _)| *kept == fewer));
        }
    }
}
