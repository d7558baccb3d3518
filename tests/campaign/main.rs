//! Campaigns: the inputs of a seed, and that everything but speed is a function of it.
#![cfg(all(feature = "cli", feature = "campaign"))]

#[path = "../cli/crashes.rs"]
mod crashes;
#[path = "../cli/ddfuzz.rs"]
mod ddfuzz;
mod flaky;
mod generator;
mod hangs;
mod interrupt;
mod kill;
mod known;
mod outcome;
mod plan;
mod rebuilt;
mod room;
mod same_result;
mod share;
mod slips;
mod until;
