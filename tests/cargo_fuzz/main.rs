//! Projects of cargo-fuzz as their users have them (`projects/`), of which ddfuzz's code knows
//! nothing, and this project's own harnesses (`fuzz/`).
#![cfg(all(feature = "cli", feature = "campaign"))]

mod called;
#[path = "../cli/ddfuzz.rs"]
mod ddfuzz;
mod debug_text;
mod engines;
mod exports;
mod folders;
mod groups;
mod harness;
mod harnesses;
mod install;
#[path = "../needs/mod.rs"]
mod needs;
mod project;
mod projects;
mod runner;
