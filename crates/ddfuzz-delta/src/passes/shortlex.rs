//! Shortlex: among results of one size the least is best.

use super::normalize::{LEAST, Unlike};
use super::units::Units;
use super::workpiece::Workpiece;
use crate::{Edit, Outcome, Replacement};

/// The name of this pass in the log.
const RULE: &str = "shortlex";

/// That of the last normal form, which comes when all else is proved.
const LAST: &str = "values";

/// Results of more bytes than these keep the values that they have come to.
pub(super) const SMALL: usize = 128;

/// So many tests the last normal form may take, however often it is come back to.
pub(super) const MOST: usize = 512;

/// The last normal form: writes `0` over what can take it, from the end to the front, more bytes at
/// a time as long as it takes. Whether anything did: then single deletions are open again. `left` is
/// what is left of [`MOST`].
///
/// Invariant: the size stays, and no byte becomes greater in the order of [`shortlex`]. Where nothing
/// takes and tests are left, no byte can become `0` alone.
pub(super) async fn last_form(work: &mut Workpiece, left: &mut usize) -> bool {
    let before = work.reductions();
    let (mut to, mut block) = (work.len(), 1);
    if to > SMALL {
        return false;
    }
    while to > 0 && *left > 0 {
        let from = to - block.min(to);
        let unlike = Unlike::within(work, LAST, from..to);
        if unlike.len() == 0 {
            to = from;
            continue;
        }
        *left -= 1;
        let zeros = unlike.zeros(0..unlike.len());
        match work.test(LAST, zeros).await {
            Outcome::Fail => (to, block) = (from, block * 2),
            _ if block > 1 => block = 1,
            _ => to = from,
        }
    }
    work.reductions() > before
}

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
        match work.test(RULE, Edit::Set(vec![zero])).await {
            Outcome::Fail => budget += 1,
            Outcome::Pass | Outcome::Unresolved => budget -= 1,
        }
    }
}
