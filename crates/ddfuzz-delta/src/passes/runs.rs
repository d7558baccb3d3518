//! Runs of neighbours that go only together: records of which nothing tells where they begin, as
//! they stand in what harnesses with structured input read.
//!
//! Group testing meets such a run only where its halving happens to end at both borders. So
//! behind the sweep runs are tried at every place: first those whose length a byte at
//! their beginning may tell, then each length in turn, for records of one kind are of one length.
//! Last, what stands behind such a byte is shortened together with it.
//!
//! That costs many tests. It is done only in what a run went from in one piece before, and of
//! which more than a few bytes are left, the first two parts only in binary data. It ends when a
//! multiple of the tests so far has brought nothing.

use super::workpiece::Workpiece;
use crate::{Edit, Outcome, Replacement};

/// Of so few bytes there are hardly more runs than the other passes have tried.
const FEW: usize = 16;

/// Longest run that is tried at every place.
const LONGEST: usize = 32;
/// Bytes of a run before, and with, the one that tells the length of what follows.
const HEADS: usize = 4;
/// Tests in vain that end the pass: so many times those before it, and so many besides.
const PATIENCE: (usize, usize) = (4, 512);
/// The same for what looks like a text.
const PATIENCE_WITH_TEXT: usize = 128;

/// Deletes runs; says whether any went.
pub(super) async fn runs(work: &mut Workpiece) -> bool {
    if work.len() <= FEW || !work.has_lost_a_run() {
        return false;
    }
    let before = work.reductions();
    // What looks like a text may still hold a length or two.
    let is_text = work.is_text();
    let patience = match is_text {
        true => PATIENCE_WITH_TEXT,
        false => work.asked() * PATIENCE.0 + PATIENCE.1,
    };
    let mut left = patience;
    if !is_text {
        every_place(work, &mut left, patience).await;
    }
    let mut at = 0;
    while left > 0 && at < work.len() {
        shorten(work, at, &mut left, patience).await;
        at += 1;
    }
    work.reductions() > before
}

/// Tries runs at every place.
async fn every_place(work: &mut Workpiece, left: &mut usize, patience: usize) {
    for head in 1..=HEADS {
        let told = |text: &[u8], at: usize| Some(head + usize::from(*text.get(at + head - 1)?));
        sweep(work, &told, left, patience).await;
    }
    for length in 2..=LONGEST {
        sweep(work, &|_, _| Some(length), left, patience).await;
    }
}

/// Takes the byte at `at` for the length of what follows it, and keeps as little of that as will
/// do, by galloping.
async fn shorten(work: &mut Workpiece, at: usize, left: &mut usize, patience: usize) {
    let Some(length) = work.byte(at) else { return };
    let payload = at + 1..at + 1 + usize::from(length);
    // Of equal bytes the first is as good as the others.
    if length < 2 || payload.end > work.len() || work.byte(at + 1) == Some(length) {
        return;
    }
    let mut kept: u8 = 0;
    while kept < length && *left > 0 {
        let rest = work.text()[at + 1..][..usize::from(kept)].to_vec();
        let replacement = Replacement {
            at: at..payload.end,
            with: std::iter::once(kept).chain(rest).collect(),
        };
        match work.test("runs", Edit::Set(vec![replacement])).await {
            Outcome::Fail => {
                *left = patience;
                return;
            }
            Outcome::Pass | Outcome::Unresolved => *left -= 1,
        }
        kept = kept.saturating_mul(2).max(1);
    }
}

/// Tries one run at every place; `length` says how long it is. Behind one that went the next may
/// stand at the same place.
async fn sweep(
    work: &mut Workpiece,
    length: &(dyn Fn(&[u8], usize) -> Option<usize> + Sync),
    left: &mut usize,
    patience: usize,
) {
    let mut at = 0;
    while *left > 0 && at < work.len() {
        let text = work.text();
        let end = length(&text, at).map(|length| at + length);
        let Some(end) = end.filter(|end| (at + 2..=text.len()).contains(end)) else {
            at += 1;
            continue;
        };
        let edit = Edit::Cut(std::iter::once(at..end).collect());
        match work.test("runs", edit).await {
            Outcome::Fail => *left = patience,
            Outcome::Pass | Outcome::Unresolved => {
                *left -= 1;
                at += 1;
            }
        }
    }
}
