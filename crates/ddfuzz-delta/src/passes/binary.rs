//! The pass over binary formats: records, frames, and what repair finds.

use crate::Outcome;
use crate::passes::current_best::CurrentBest;
use crate::passes::detect::{SCOPE, frames, payload, records};
use crate::passes::list::List;
use crate::passes::protocol::Protocol;
use crate::passes::repair::Repair;
use crate::passes::units::{Bytes, Units};

/// Larger texts are not looked through, in bytes.
const LARGEST: usize = 1 << 14;

/// Readings of a text that are tried, of each kind.
const READINGS: usize = 4;

/// Reduces a binary format by its numbers; says whether it has any.
///
/// Invariant: numbers that were right stay right.
pub(super) async fn binary(work: &mut CurrentBest) -> bool {
    let len = work.len();
    if !(2..=LARGEST).contains(&len) {
        return false;
    }
    // Where the last byte can go just so, no number protects anything.
    if work.cut("bytes", len - 1..len).await == Outcome::Fail {
        return false;
    }
    recorded(work).await || framed(work).await || repaired(work).await
}

/// Reduces records, and then what is in them.
async fn recorded(work: &mut CurrentBest) -> bool {
    let readings = records(&work.text());
    for mut records in readings.into_iter().take(READINGS) {
        if is_right(work, &mut records).await {
            List::new(work, &mut records).reduce().await;
            let mut bytes = payload(&records);
            List::new(work, &mut bytes).reduce().await;
            return true;
        }
    }
    false
}

/// Reduces what a length, and maybe a checksum, protects.
async fn framed(work: &mut CurrentBest) -> bool {
    let is_text = work.is_text();
    let readings = frames(&work.text(), SCOPE).into_iter();
    // A letter may be the size of a text, but is not meant so.
    let meant = |frame: &Protocol| !is_text || frame.fields.iter().any(|one| one.form.width > 1);
    for mut frame in readings.filter(meant).take(READINGS).collect::<Vec<_>>() {
        if is_right(work, &mut frame).await {
            List::new(work, &mut frame).reduce().await;
            read_again(work, &frame).await;
            return true;
        }
    }
    false
}

/// A sum that makes all zero can be read at both of its ends: what the other reading takes for the
/// checksum may go now.
async fn read_again(work: &mut CurrentBest, frame: &Protocol) {
    let Some(length) = frame.fields.first() else {
        return;
    };
    let others = frames(&work.text(), 1).into_iter();
    let same = |other: &Protocol| {
        let found = other.fields.first();
        found.is_some_and(|found| (found.at, found.form) == (length.at, length.form))
            && other.fields.len() > 1
            && other.pieces != frame.pieces
    };
    for mut other in others.filter(same).take(READINGS).collect::<Vec<_>>() {
        if is_right(work, &mut other).await {
            List::new(work, &mut other).reduce().await;
            return;
        }
    }
}

/// Reduces what numbers protect that only a run tells of.
async fn repaired(work: &mut CurrentBest) -> bool {
    let Some(repair) = Repair::learn(work).await else {
        return false;
    };
    let mut bytes = Bytes::within("repair", repair.between(work.len()));
    work.repair_by(Some(repair));
    List::new(work, &mut bytes).reduce().await;
    work.repair_by(None);
    true
}

/// Whether a reading is right: its last piece can go, or its first.
async fn is_right(work: &mut CurrentBest, protocol: &mut Protocol) -> bool {
    let before = work.reductions();
    for last in [true, false] {
        let Some(end) = protocol.len().checked_sub(1) else {
            return false;
        };
        let piece = if last { end..end + 1 } else { 0..1 };
        List::new(work, protocol).delete(piece).await;
        if work.reductions() > before {
            return true;
        }
    }
    false
}
