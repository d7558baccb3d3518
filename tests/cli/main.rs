//! The command line, called as a user calls it.
#![cfg(all(feature = "cli", feature = "campaign"))]

mod calls;
mod check;
mod check_programs;
#[path = "../../crates/ddfuzz-store/tests/pages/chromium.rs"]
#[allow(dead_code, reason = "keys are pressed in the pages of campaigns only")]
mod chromium;
mod clean;
mod clean_blocks;
mod clean_hostile;
mod clean_killed;
mod clean_places;
mod clean_slips;
mod completions;
mod config;
mod crashes;
mod ddfuzz;
mod diff;
mod difference;
mod difference_test;
mod doctor;
mod errors;
mod explain;
mod export;
mod export_test;
mod generate;
mod hangs;
mod hints;
mod hostile;
mod hostile_tests;
mod input_files;
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
#[path = "../../crates/ddfuzz-store/tests/pages/measure.rs"]
mod measure;
mod memory;
mod merge;
mod min;
mod min_directory;
mod namespace;
#[path = "../needs/mod.rs"]
mod needs;
mod older;
mod own_main;
mod own_targets;
mod read_once;
mod report;
mod reports;
mod result_files;
mod robust;
mod run;
mod sandbox;
mod screen;
mod screens;
mod several_targets;
mod show;
mod snapshot;
mod study;
mod system_programs;
mod terminal;
mod traps;
mod triage;
mod triage_directories;
mod triage_known;
mod triage_resume;
mod usage;
mod watch;
