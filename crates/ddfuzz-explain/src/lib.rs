//! Explains a failure by experiments on the running program.
//!
//! - In: a program with debug information, a failing and a passing run of it.
//! - Out: an [`Explanation`]: the variables that carried the failure from the input to the crash,
//!   and the statements that wrote them, each link tested.
//! - Central types: [`Graph`](graph::Graph), a program state; [`Differences`](delta::Differences)
//!   between two; [`Explanation`].
//! - Reading order: `types.rs`, `graph.rs`, `unfold.rs`, `matching.rs`, `delta.rs`, `alignment.rs`
//!   and `chain.rs`, which are pure; then `dwarf/`, `engine/`, `experiments.rs`, `explain.rs`.

mod access_story;
mod accessed;
pub mod alignment;
mod averting;
mod block_delta;
mod certainty;
pub mod chain;
mod chain_records;
mod chain_rows;
mod crossing;
pub mod delta;
mod difference_story;
mod drawing;
pub mod dwarf;
pub mod engine;
mod experiments;
mod explain;
mod failing_facts;
mod failure;
pub mod graph;
mod link_tests;
mod links;
pub mod matching;
mod named_places;
mod other_words;
mod outside_story;
mod passing;
mod places;
mod plain_build;
pub mod plan;
mod pointer_words;
mod recursion;
mod refused;
pub mod report;
mod rounds;
mod series;
pub mod slice;
mod stack_layout;
mod stages;
pub mod story;
mod suspects;
mod text_delta;
pub mod types;
pub mod unfold;
mod writers;

pub use explain::{ExplainError, Request, SliceGoal, explain};
pub use places::source_text;
pub use regex::bytes::{Regex as Pattern, RegexBuilder as PatternBuilder};
pub use report::Explanation;
pub use stack_layout::equally_long;
