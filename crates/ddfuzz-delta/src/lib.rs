//! Pure delta debugging: configurations, outcomes, and searches as step machines.
//!
//! Nothing here reads a file or a clock, starts a thread, or draws a random number. A [`Search`]
//! says which [`Candidate`] to test next and is told the [`Outcome`]; who runs the tests, in what
//! order and on how many workers, is the caller's business, and cannot change the result.
//!
//! The terms are those of the sources (Hildebrandt & Zeller, *Simplifying Failure-Inducing
//! Input*, ISSTA 2000; Zeller, *Why Programs Fail*, appendix A, whose definitions and
//! propositions are cited as A.10 and the like).
//!
//! # Simplifying any sequence
//! ```
//! use ddfuzz_delta::{Outcome, ddmin};
//!
//! let changes: Vec<u32> = (1..=8).collect();
//! let fails_with_1_7_and_8 = |kept: &[u32]| match [1, 7, 8].map(|change| kept.contains(&change)) {
//!     [true, true, true] => Outcome::Fail,
//!     [false, false, false] => Outcome::Pass,
//!     _ => Outcome::Unresolved,
//! };
//! assert_eq!(ddmin(&changes, fails_with_1_7_and_8), Ok(vec![1, 7, 8]));
//! ```
//!
//! # Simplifying a call
//! [`DeltaDebugger`] takes a function that panics and its arguments, and says what part of them
//! makes it panic.
//!
//! # Units
//! The units of a sequence are its items: bytes, characters, [`lines`], [`tokens`], arguments,
//! environment variables. The [`changes`] between two texts are units too.
//!
//! # Searches
//! | search | what it does | after |
//! |---|---|---|
//! | [`Ddmin`] | minimizes, by subsets and complements | ISSTA, figure 1 |
//! | [`Ddmin2002`] | minimizes, by complements alone | *The Debugging Book* |
//! | [`Dd`] | minimizes, maximizes, or isolates a difference | *The Debugging Book*; A.1.6 |
//! | [`Dd1999`] | divides and unites, where all is monotone and resolved | ESEC, algorithm 1 |
//! | [`DdPlus`] | the same with unresolved outcomes | ESEC, algorithm 2 |
//! | [`Subset`] | minimizes by deleting, in the order that needs the fewest tests | its passes |
//! | [`Full`] | minimizes, and may replace bytes too | its passes |
//!
//! ESEC is Zeller, *Yesterday, my program worked. Today, it does not. Why?*, 1999; AADEBUG is
//! Cleve & Zeller, *Finding Failure Causes through Automated Testing*, 2000.

mod algebra;
mod argument;
mod arguments;
mod axiom;
mod cache;
mod candidate;
mod change;
mod config;
mod dd;
mod dd_1999;
mod dd_plus;
mod ddmin;
mod ddmin_2002;
mod debugger;
mod difference;
mod findings;
mod hints;
mod monotony;
mod outcome;
mod passes;
mod pieces;
mod predictor;
mod search;
mod sequence;
mod split;
mod subsequence;
mod tester;

mod verdict;

pub use self::dd::{Dd, Mode};
pub use self::ddmin::Ddmin;
pub use argument::Argument;
pub use arguments::Arguments;
pub use axiom::{AxiomError, NotFailing, NotPassing};
pub use cache::{Cache, Caching, Hit, Seen, TextId};
pub use candidate::{Candidate, Edit, Replacement, Rule};
pub use change::{Change, apply, changes};
pub use config::{Config, ConfigId};
pub use dd_1999::Dd1999;
pub use dd_plus::DdPlus;
pub use ddmin_2002::Ddmin2002;
pub use debugger::DeltaDebugger;
pub use difference::Difference;
pub use hints::{Comparison, Hints};
pub use monotony::Monotony;
pub use outcome::Outcome;
pub use passes::{Full, Subset};
pub use pieces::{lines, tokens};
pub use predictor::{Order, Predictor, Requires};
pub use search::Search;
pub use sequence::{dd, ddmin, minimize};
pub use split::part;
pub use tester::{Answered, Tally, Tester};
pub use verdict::Verdict;
