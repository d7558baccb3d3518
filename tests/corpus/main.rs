//! Tests of `ddfuzz::corpus`.
#![cfg(all(feature = "cli", feature = "campaign"))]

mod behaviour;
mod cover;
#[path = "../cli/ddfuzz.rs"]
mod ddfuzz;
mod engine;
mod harness;
mod health;
mod journal;
mod listing;
mod measure;
mod measure_again;
mod measure_ends;
#[path = "../needs/mod.rs"]
mod needs;
mod places;
#[path = "../triage/refused.rs"]
#[allow(dead_code, reason = "the tests of `triage` use more of it")]
mod refused;
mod seats;
mod trim;
mod trim_log;
mod trim_many;
mod trim_targets;

use ddfuzz::compiled;
