//! Random tests that are the same each time.

use proptest::test_runner::{Config, RngSeed};

/// Inputs at random by this seed; nothing is written where a test fails.
pub fn seed(seed: u64) -> Config {
    Config {
        rng_seed: RngSeed::Fixed(seed),
        failure_persistence: None,
        ..Config::default()
    }
}
