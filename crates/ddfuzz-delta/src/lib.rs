//! Delta debugging without I/O: it finds the part of a failing input that matters.
//!
//! The caller has a sequence (bytes, lines, events, changes, arguments) and a test that says
//! whether a part of it still fails. [`ddmin`] and [`minimize`] return a small part that does;
//! [`dd`] returns a passing and a failing part that hardly differ; [`DeltaDebugger`] simplifies the
//! arguments of a function call that panics.
//!
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
//! # Terms
//! - *unit*: an item of the sequence. [`lines`] and [`tokens`] split a text into units; the
//!   [`changes`] between two texts are units, too.
//! - *configuration* ([`Config`]): the set of units that are kept. `c✗` is the whole input, `∅` the
//!   empty one.
//! - *outcome* ([`Outcome`]): FAIL if the failure occurs, PASS if it does not, UNRESOLVED if
//!   neither can be said.
//! - *1-minimal*: the configuration fails, and without any single one of its units it does not.
//!
//! # Searches as step machines
//! A [`Search`] returns the next [`Candidate`] to test and receives its [`Outcome`]. The caller
//! decides how tests are run, in which process and on how many workers; this cannot change the
//! result. A [`Tester`] runs a search in the caller's process, with a [`Cache`] and [`Predictor`]s.
//!
//! | search | what it does | source |
//! |---|---|---|
//! | [`Ddmin`] | minimizes by testing subsets and complements | ISSTA 2000, figure 1 |
//! | [`Ddmin2002`] | minimizes by testing complements only | *The Debugging Book* |
//! | [`Dd`] | minimizes, maximizes, or isolates a difference | *The Debugging Book*; A.1.6 |
//! | [`Dd1999`] | divides and unites, for monotone failures without UNRESOLVED outcomes | ESEC 1999, algorithm 1 |
//! | [`DdPlus`] | divides and unites, with UNRESOLVED outcomes | ESEC 1999, algorithm 2 |
//! | [`Subset`] | minimizes by deleting, in an order that needs few tests | this crate |
//! | [`Full`] | minimizes bytes by deleting and replacing | this crate |
//!
//! # Sources
//! - ESEC 1999: Zeller, *Yesterday, my program worked. Today, it does not. Why?*
//! - ISSTA 2000: Hildebrandt & Zeller, *Simplifying Failure-Inducing Input*.
//! - AADEBUG 2000: Cleve & Zeller, *Finding Failure Causes through Automated Testing*.
//! - A.10, A.1.6 and the like: definitions and propositions in appendix A of Zeller, *Why Programs
//!   Fail*.
//! - Zeller et al., *The Debugging Book*, chapter "Reducing Failure-Inducing Inputs".

mod arguments;
mod cache;
mod change;
mod config;
mod dd;
mod dd_1999;
mod ddmin;
mod debugger;
mod document;
pub mod interruption;
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
pub use change::{Change, apply, changes, one_change};
pub use config::{Config, ConfigId, part};
pub use dd_1999::{Dd1999, DdPlus};
pub use debugger::{DeltaDebugger, Verdict};
pub use document::{
    Document, Format, Grammar, InnerItems, Structure, SyntaxClass, SyntaxNode, SyntaxTree,
};
pub use outcome::{AxiomError, Comparison, Hints, NotFailing, NotPassing, Outcome};
pub use passes::{Checksum, Full, PlainText, Subset};
pub use predictor::{Monotony, Order, Predictor, Requires};
pub use search::{Candidate, Edit, ExtraTests, Replacement, Rule, Search};
pub use sequence::{dd, ddmin, lines, minimize, tokens};
pub use tester::{Answered, Tally, Tester};
