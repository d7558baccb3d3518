//! Searches made of passes: [`Subset`], which deletes only, and [`Full`].
//!
//! Each pass is a file, whose functions say in prose what invariant they keep. They share a
//! `CurrentBest`, the best so far with the way to ask for less, and most of them the list search of
//! `list`: ends, middle, and a sweep by group testing over any units that can be deleted, be they
//! bytes, lines, siblings in a tree, levels of a nest, records, or positions to be made `0`.
//!
//! | pass | deletes or replaces |
//! |---|---|
//! | `unread` | what the run of the input did not read |
//! | `siblings`, `hoist`, `unwrap`, `strings` | parts of the tree of brackets |
//! | `records`, `payload` | records and their insides, keeping counts, lengths and checksums right |
//! | `repair` | what numbers protect, by the operands of the comparisons that found them wrong |
//! | `lines` | lines |
//! | `bytes`, `groups` | bytes, one by one, or two by two where their number counts |
//! | `normalize`, `shortlex` | writes `0`; of small results as the last of all |
//! | `runs` | neighbours that go only together, and what a length tells, in binary data |
//! | `pairs` | two bytes that go only together |
//! | `singles` | single bytes: its last round is the proof |

mod binary;
mod coroutine;
mod current_best;
mod deletions;
mod detect;
mod field;
mod gap_model;
mod list;
mod normalize;
mod protocol;
mod ranges;
mod repair;
mod script;
mod structure;
mod tree;
mod units;

pub use script::{Full, Subset};
