//! Tests of `ddfuzz::report`.
#![cfg(feature = "engine")]

mod block;
mod check;
#[cfg(feature = "cli")]
mod ci;
mod clean;
mod export;
mod hexdump;
mod json;
mod narrowing;
mod sample;
mod shrinking;
mod size;
mod study;
mod table;
mod text;
mod trace;
mod triage;
mod view;

/// Random cases that are the same in every run.
fn fixed_cases(cases: u32) -> proptest::test_runner::Config {
    proptest::test_runner::Config {
        cases,
        rng_seed: proptest::test_runner::RngSeed::Fixed(1994),
        failure_persistence: None,
        ..proptest::test_runner::Config::default()
    }
}
