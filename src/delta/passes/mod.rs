//! Searches made of passes.

mod binary;
mod chain;
mod checksum;
mod detect;
mod dialogue;
mod field;
mod full;
mod lines;
mod list;
mod normalize;
mod pairs;
mod parse;
mod pattern;
mod protocol;
mod repair;
mod shortlex;
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
