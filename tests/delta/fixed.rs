//! Property tests draw the same cases on every machine and every day.

use proptest::test_runner::{Config, RngSeed};

/// The settings of all property tests here.
pub fn seed() -> Config {
    Config {
        rng_seed: RngSeed::Fixed(2000),
        failure_persistence: None,
        ..Config::default()
    }
}
