//! Studies of many utilities: `ddfuzz revisit`, and what stands behind it.
#![cfg(all(feature = "cli", feature = "campaign"))]

mod canary;
#[path = "../cli/ddfuzz.rs"]
mod ddfuzz;
mod ends;
mod lab;
mod labels;
#[path = "../campaign/outcome.rs"]
mod outcome;
mod plan;
mod resume;
mod same_table;
mod select;
mod terminal;
mod timed;

use ddfuzz::compiled;
