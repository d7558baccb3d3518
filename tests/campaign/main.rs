//! Campaigns: the inputs of a seed, and that everything but speed is a function of it.
#![cfg(all(feature = "cli", feature = "campaign"))]

mod compared;
#[path = "../cli/crashes.rs"]
mod crashes;
#[path = "../cli/ddfuzz.rs"]
mod ddfuzz;
mod dictionary;
mod ends;
mod ends_of_commands;
mod flaky;
mod generator;
mod guided;
mod guided_ends;
mod hangs;
mod interrupt;
mod keys;
mod kill;
mod known;
mod miller;
mod mutation;
#[path = "../needs/mod.rs"]
mod needs;
mod outcome;
mod plan;
#[path = "../exec/programs.rs"]
#[allow(dead_code, reason = "the tests of `exec` use more of it")]
mod programs;
mod rebuilt;
mod room;
mod same_result;
mod seeds;
mod share;
mod slips;
mod smaller;
mod stage;
mod until;
mod variants;
mod watch;

use ddfuzz::compiled;
