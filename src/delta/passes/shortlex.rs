//! Shortlex: among results of one size the least is best.

use super::normalize::LEAST;
use super::workpiece::Workpiece;
use crate::delta::{Edit, Outcome, Replacement};

/// Writes `0` over single bytes, from the end to the front, as long as the budget of tests allows.
/// What takes extends it.
///
/// Invariant: the size stays, and no byte becomes greater in the order `0`, digits, letters, what
/// is printable, the rest.
pub(super) async fn shortlex(work: &mut Workpiece, mut budget: usize) {
    let mut at = work.len();
    while at > 0 && budget > 0 {
        at -= 1;
        if work.byte(at) == Some(LEAST) {
            continue;
        }
        let zero = Replacement {
            at: at..at + 1,
            with: vec![LEAST],
        };
        match work.test("shortlex", Edit::Set(vec![zero])).await {
            Outcome::Fail => budget += 1,
            Outcome::Pass | Outcome::Unresolved => budget -= 1,
        }
    }
}
