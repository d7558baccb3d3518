//! The command line, called as a user calls it.
#![cfg(all(feature = "cli", feature = "campaign"))]

mod crashes;
mod ddfuzz;
mod diff;
mod difference;
mod errors;
mod hostile;
mod json;
mod log;
mod max;
mod merge;
mod min;
mod namespace;
#[path = "../needs/mod.rs"]
mod needs;
mod run;
mod screens;
mod show;
mod system_programs;
mod triage;
