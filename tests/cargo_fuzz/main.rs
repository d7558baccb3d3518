//! Projects of cargo-fuzz as their users have them (`projects/`), of which ddfuzz's code knows
//! nothing, and this project's own harnesses (`fuzz/`).
#![cfg(all(feature = "cli", feature = "campaign"))]

#[path = "../cli/ddfuzz.rs"]
mod ddfuzz;
mod debug_text;
mod groups;
mod harnesses;
#[path = "../needs/mod.rs"]
mod needs;
mod projects;
