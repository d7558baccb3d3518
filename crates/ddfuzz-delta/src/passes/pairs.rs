//! Pairs of bytes that can only go together.

use super::places::union;
use super::workpiece::Workpiece;
use crate::{Edit, Outcome};

/// Deletes pairs of bytes, neighbours first, as long as `budget` tests allow.
///
/// Invariant: single bytes are judged elsewhere; a pair that goes begins the round anew, because
/// it may have freed another.
pub(super) async fn pairs(work: &mut Workpiece, budget: usize) {
    let end = work.asked() + budget;
    'anew: loop {
        for apart in 1..work.len() {
            for first in (0..work.len() - apart).rev() {
                if work.asked() >= end || work.len() <= 2 {
                    return;
                }
                let second = first + apart;
                let cuts = union(vec![first..first + 1, second..second + 1]);
                if work.test("pairs", Edit::Cut(cuts)).await == Outcome::Fail {
                    continue 'anew;
                }
            }
        }
        return;
    }
}
