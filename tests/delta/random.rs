//! Random failures, unresolved outcomes among them.

use ddfuzz::delta::Outcome;
use proptest::prelude::*;

/// A failure by rule: all of `needed` must be there; what else is odd is decided by a hash of the
/// configuration, so that outcomes are neither monotone nor always resolved.
#[derive(Clone, Debug)]
pub struct Failure {
    needed: Vec<usize>,
    seed: u64,
    /// Of 16 configurations, how many fail without reason, and how many are unresolved.
    odd: (u64, u64),
    /// Number of units.
    pub units: usize,
}

impl Failure {
    /// The outcome of the units kept.
    pub fn test(&self, kept: &[usize]) -> Outcome {
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

/// Failures of 1 to 47 units.
pub fn failures() -> impl Strategy<Value = Failure> {
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
