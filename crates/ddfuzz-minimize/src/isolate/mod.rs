//! General delta debugging of a failing input: the largest part that still passes
//! ([`Goal::Maximize`]), or the smallest difference between a part that passes and one that fails
//! ([`Goal::Isolate`]).
//!
//! It stands beside [`minimize`](super::minimize()) and shares its oracle, journal, budgets and
//! log; what differs is that there are two ends, of which the passing one grows, that the deltas
//! may be the edits between two inputs, and what a claim rests on: adding each single delta of the
//! difference to the passing end does not PASS, and, isolating, taking it from the failing end
//! does not FAIL.
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
