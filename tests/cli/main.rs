//! The command line, called as a user calls it.
#![cfg(all(feature = "cli", feature = "campaign"))]

mod calls;
mod check;
mod completions;
mod config;
mod crashes;
mod ddfuzz;
mod diff;
mod difference;
mod difference_test;
mod doctor;
mod errors;
mod export;
mod export_test;
mod hangs;
mod hints;
mod hostile;
mod hostile_tests;
mod interestingness;
mod jobs;
mod json;
mod leaks;
mod libfuzzer;
mod live;
mod log;
mod log_lines;
mod man;
mod max;
mod merge;
mod min;
mod namespace;
#[path = "../needs/mod.rs"]
mod needs;
mod own_targets;
mod reports;
mod robust;
mod run;
mod screen;
mod screens;
mod show;
mod system_programs;
mod triage;
mod triage_directories;
mod triage_known;
mod triage_resume;
mod watch;
