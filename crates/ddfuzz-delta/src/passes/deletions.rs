//! Passes that delete single bytes, pairs of bytes, and runs of neighbours.

use crate::{Edit, Outcome, Replacement, passes::current_best::CurrentBest, passes::ranges::union};

/// Deletes single bytes, from the end to the front, equal neighbours as one. Behind a byte that
/// goes, twice as many are tried.
///
/// Invariant: no byte behind the position can go alone, given what is in front of it. A round that
/// deletes nothing is the proof of the result: each of its tests removes one byte of it.
///
/// Says whether most of the needed bytes are so because a test without them was UNRESOLVED.
pub(super) async fn singles(work: &mut CurrentBest) -> bool {
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

/// Deletes pairs of bytes, neighbours first, as long as `budget` tests allow.
///
/// Invariant: single bytes are judged elsewhere; a pair that goes begins the round anew, because
/// it may have freed another.
pub(super) async fn pairs(work: &mut CurrentBest, budget: usize) {
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
pub(super) async fn runs(work: &mut CurrentBest) -> bool {
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
async fn every_place(work: &mut CurrentBest, left: &mut usize, patience: usize) {
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
async fn shorten(work: &mut CurrentBest, at: usize, left: &mut usize, patience: usize) {
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
    work: &mut CurrentBest,
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
