//! Tests of `triage`: planted bugs in real processes, and the pure parts on made-up snapshots.
#![cfg(feature = "engine")]

mod abort_text;
mod class;
#[path = "../compiled/mod.rs"]
mod compiled;
mod copied;
mod fold;
mod giving_up;
mod hang;
mod headers;
mod keys;
mod made_up;
mod maps;
mod messages;
mod module;
#[path = "../needs/mod.rs"]
mod needs;
mod normalise;
mod observable;
mod oom;
mod overflow;
mod overwritten;
mod parsers;
mod partition;
mod programs;
mod record;
mod refused;
mod runtime_modules;
mod severity;
mod site;
mod start;
mod symbols;
mod tail_calls;
mod triager;

use ddfuzz::triage::{Crash, Key, Quick, Triager, Verdict};
use programs::Variant;
use start::Starter;

/// A triager for one variant of the planted bugs.
fn triager(variant: &Variant) -> Triager {
    Triager::new(Box::new(Starter::new(variant.path())))
}

/// The record of the crash that `input` causes.
fn crash(variant: &Variant, input: &[u8]) -> Crash {
    match triager(variant).examine(input).expect("the target runs") {
        Verdict::Crash(crash) => *crash,
        Verdict::Flaky { ended, .. } => {
            panic!("{:?} ended with {ended}", String::from_utf8_lossy(input))
        }
    }
}

/// Class and keys of the crash that `input` causes.
fn keys(triager: &mut Triager, input: &[u8]) -> (String, Key, Key) {
    match triager.key(input).expect("the target runs") {
        Quick::Crash {
            class,
            major,
            minor,
        } => (class.0, major, minor),
        Quick::Ended(ended) => panic!("{:?} ended with {ended}", String::from_utf8_lossy(input)),
    }
}

/// Names of the frames of the user's own code, innermost first.
fn own_names(crash: &Crash) -> Vec<&str> {
    let own = crash.frames.iter().filter(|frame| frame.own);
    own.map(|frame| frame.name.as_deref().unwrap_or("?"))
        .collect()
}

/// Random cases that are the same in every run.
fn fixed_cases(cases: u32) -> proptest::test_runner::Config {
    proptest::test_runner::Config {
        cases,
        rng_seed: proptest::test_runner::RngSeed::Fixed(1994),
        failure_persistence: None,
        ..proptest::test_runner::Config::default()
    }
}
