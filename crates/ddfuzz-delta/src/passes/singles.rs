//! The last look: each single byte.

use super::workpiece::Workpiece;
use crate::Outcome;

/// Deletes single bytes, from the end to the front, equal neighbours as one. Behind a byte that
/// goes, twice as many are tried.
///
/// Invariant: no byte behind the position can go alone, given what is in front of it. A round that
/// deletes nothing is the proof of the result: each of its tests removes one byte of it.
///
/// Says whether most of the needed bytes are so because a test without them was UNRESOLVED.
pub(super) async fn singles(work: &mut Workpiece) -> bool {
    let (mut needed, mut unresolved) = (0, 0);
    let mut to = work.len();
    let mut block = 1;
    while to > 0 {
        let size = block.min(to);
        if work.len() == 1 {
            // Nothing but the empty text is smaller, which is part of the axiom.
            return false;
        }
        let outcome = work.cut("singles", to - size..to).await;
        if outcome == Outcome::Fail {
            to -= size;
            block *= 2;
        } else if size > 1 {
            block = 1;
        } else {
            needed += 1;
            unresolved += usize::from(outcome == Outcome::Unresolved);
            to = work.run_start(to - 1);
        }
    }
    unresolved * 2 >= needed && needed > 0
}
