//! Searches made of passes.

mod dialogue;
mod full;
mod lines;
mod list;
mod normalize;
mod pairs;
mod pattern;
mod singles;
mod spacing;
mod subset;
mod units;
mod workpiece;

pub use full::Full;
pub use subset::Subset;
