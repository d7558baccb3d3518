//! Searches made of passes.

mod chain;
mod dialogue;
mod full;
mod lines;
mod list;
mod normalize;
mod pairs;
mod parse;
mod pattern;
mod singles;
mod spacing;
mod spots;
mod structure;
mod subset;
mod tree;
mod units;
mod workpiece;

pub use full::Full;
pub use subset::Subset;
