//! Searches that consist of passes: [`Subset`], which only deletes, and [`Full`], which also
//! replaces bytes.
//!
//! Passes share a `CurrentBest`, which holds the best text so far and tests edits of it. Most
//! passes use the list search in `list.rs`: it reduces the ends of a list, then its middle, and
//! then sweeps over the list by group testing. Its units can be bytes, lines, siblings in a tree,
//! nesting levels, records, or positions to be set to `0`.
//!
//! | pass | deletes or replaces |
//! |---|---|
//! | `unread` | the bytes that the run of the input did not read |
//! | `parts`, `raise`, `compact`, `repack`, `least`, `payload` | parts, items around others, the whole written anew, items replaced by their shortest valid form, and payloads of a file of a known format, with everything corrected that depends on them |
//! | `siblings`, `hoist`, `unwrap`, `strings`, `attributes` | parts of the tree of brackets, of tags, of keywords, or of indented lines |
//! | `directives` | conditional groups of a preprocessor, or their directives alone |
//! | `records`, `payload` | records and their contents, with corrected counts, lengths and checksums; a text in such a frame by all passes over texts |
//! | `nodes`, `raise`, `uses`, `least`, `blanks`, `names` | nodes of the syntax tree, which are deleted, replaced by nodes inside of them, or replaced by the shortest text of their kind; identifiers with their uses; blanks |
//! | `repair` | bytes that a number protects, if comparisons of a run show how to correct the number |
//! | `lines` | lines |
//! | `least`, `names`, `words` | in a text without a grammar: literals; names, several of which become one; words and signs, alone and in sequences |
//! | `bytes`, `groups` | single bytes, or two at a time if the parity of the size matters |
//! | `normalize`, `shortlex`, `values` | writes `0` over bytes; `values` runs last, on small results |
//! | `words`, `runs` and others | after the proof, in small results: as before, and columns of lists, values of names, all sequences of a few bytes |
//! | `mutations` | in inputs that are not texts, after the proof: deletes bytes and changes others |
//! | `runs` | neighbors that can only be deleted together, and bytes counted by a length byte |
//! | `multiples` | bytes of a long word whose length must stay a multiple of a number |
//! | `stretches` | after the proof: runs of equal bytes, and what is in front of them or behind them |
//! | `pairs` | two bytes that can only be deleted together |
//! | `singles` | single bytes; its last round proves 1-minimality |

mod alike;
mod beginnings;
mod binary;
mod blanks;
mod blocks;
mod by_structure;
mod chained;
mod clauses;
mod commands;
mod container;
mod coroutine;
mod current_best;
mod definitions;
mod deletions;
mod detect;
mod directives;
mod elements;
mod envelope;
mod environments;
mod field;
mod framed;
mod gap_model;
mod halves;
mod list;
mod lower;
mod markup;
mod multiples;
mod mutations;
mod names;
mod normalize;
mod outline;
mod parts;
mod plain;
mod protocol;
mod ranges;
mod refine;
mod repair;
mod script;
mod siblings;
mod strides;
mod structure;
mod syntax;
mod tree;
mod units;
mod uses;
mod words;

pub use field::Checksum;
pub use plain::PlainText;
pub use script::{Full, Subset};
