//! What ddmin guarantees, on random failures, unresolved outcomes among them.

use ddfuzz::delta::{Ddmin, Outcome};
use proptest::prelude::*;

use crate::reference;
use crate::trace::run;

/// A failure by rule: all of `needed` must be there; what else is odd is decided by a hash of the
/// configuration, so that outcomes are neither monotone nor always resolved.
#[derive(Clone, Debug)]
struct Failure {
    needed: Vec<usize>,
    seed: u64,
    /// Of 16 configurations, how many fail without reason, and how many are unresolved.
    odd: (u64, u64),
    units: usize,
}

impl Failure {
    fn test(&self, kept: &[usize]) -> Outcome {
        let all_kept = kept.len() == self.units;
        if all_kept || self.needed.iter().all(|unit| kept.contains(unit)) && !kept.is_empty() {
            return Outcome::Fail;
        }
        let mixed = kept.iter().fold(self.seed, |hash, unit| {
            (hash ^ (*unit as u64 + 1))
                .wrapping_mul(0x0000_0100_0000_01b3)
                .rotate_left(23)
        });
        match mixed >> 60 {
            _ if kept.is_empty() => Outcome::Pass,
            odd if odd < self.odd.0 => Outcome::Fail,
            odd if odd < self.odd.0 + self.odd.1 => Outcome::Unresolved,
            _ => Outcome::Pass,
        }
    }
}

fn failures() -> impl Strategy<Value = Failure> {
    (1usize..48, any::<u64>(), 0u64..4, 0u64..12).prop_flat_map(
        |(units, seed, fail, unresolved)| {
            prop::collection::vec(0..units, 0..6).prop_map(move |needed| Failure {
                needed,
                seed,
                odd: (fail, unresolved),
                units,
            })
        },
    )
}

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
