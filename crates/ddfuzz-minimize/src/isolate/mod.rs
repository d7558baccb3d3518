//! General delta debugging between a passing and a failing input, for `max` and `diff`: finds the
//! largest part that passes ([`Goal::Maximize`]), or the smallest difference between a part that
//! passes and one that fails ([`Goal::Isolate`]).
//!
//! Oracle, journal, budgets and log are those of [`minimize`](super::minimize()). Three things
//! differ. There are two sides, of which the passing one grows. A delta may be an edit between two
//! inputs instead of a byte. And a claim rests on single deltas: adding a delta of the difference
//! to the passing side does not give PASS and, when isolating, removing one from the failing side
//! does not give FAIL.
//!
//! [`Goal::Maximize`]: crate::log::Goal::Maximize
//! [`Goal::Isolate`]: crate::log::Goal::Isolate

mod driver;
mod isolated;
mod progress;
mod sides;
mod verify;

pub use driver::{OnSide, isolate};
pub use isolated::{DifferenceResult, DifferingRecord, Isolated, IsolationWarning};
pub use sides::{Differing, Side, Subject};
pub use verify::{FalseDelta, ReplayedSides, VerifiedSides, replay_sides, verify_sides};
