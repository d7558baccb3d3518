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

mod arguments;
mod cache;
mod change;
mod config;
mod dd;
mod dd_1999;
mod ddmin;
mod debugger;
mod outcome;
mod passes;
mod predictor;
mod search;
mod sequence;
mod tester;

pub use self::dd::{Dd, Difference, Mode};
pub use self::ddmin::{Ddmin, Ddmin2002};
pub use arguments::{Argument, Arguments};
pub use cache::{Cache, Caching, Hit, Seen, TextId};
pub use change::{Change, apply, changes};
pub use config::{Config, ConfigId, part};
pub use dd_1999::{Dd1999, DdPlus};
pub use debugger::{DeltaDebugger, Verdict};
pub use outcome::{AxiomError, Comparison, Hints, NotFailing, NotPassing, Outcome};
pub use passes::{Full, Subset};
pub use predictor::{Monotony, Order, Predictor, Requires};
pub use search::{Candidate, Edit, Replacement, Rule, Search};
pub use sequence::{dd, ddmin, lines, minimize, tokens};
pub use tester::{Answered, Tally, Tester};
