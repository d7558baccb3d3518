//! The passes in their order.

use super::binary::binary;
use super::lines::Lines;
use super::list::List;
use super::normalize::normalize;
use super::pairs::pairs;
use super::runs::runs;
use super::shortlex::{self, last_form, shortlex};
use super::singles::singles;
use super::structure::structure;
use super::units::{Bytes, Units};
use super::workpiece::Workpiece;

/// Fewer bytes than these are not worth a probe of their values.
const NORMALIZED: usize = 4;
/// More lines than these are reduced as lines first.
const MANY_LINES: usize = 8;
/// Larger texts have their values probed only after the sweep, where nothing is at the front.
const MEDIUM: usize = 4096;
/// UNRESOLVED tests after which plain bytes are given up.
const PATIENCE: usize = 2;
/// A search of so few tests has no budget for extras; of the tests beyond, one of so many goes to
/// each, and no more than so many in all while nothing comes of it.
const CHEAP: usize = 24;
const SHARE: usize = 32;
const MOST: usize = 2;
/// Bytes left whose values may be tried one by one.
const SHORT: usize = 16;
/// So few pairs are always tried.
const CHEAP_PAIRS: usize = 6;
/// Bytes left of which all pairs may be tried.
const FEW: usize = 32;

/// What a script may do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Plan {
    /// Delete bytes.
    Delete,
    /// Replace bytes, too.
    Rewrite,
}

/// All passes in their order, again and again until a whole round finds nothing.
pub(super) async fn script(mut work: Workpiece, plan: Plan) {
    read_part(&mut work).await;
    // A text may lie in a binary frame.
    let structured = work.is_text() && structure(&mut work).await
        || plan == Plan::Rewrite && binary(&mut work).await;
    let (mut by_groups, mut values) = (structured, shortlex::MOST);
    loop {
        bytes(&mut work, plan, structured).await;
        // Before single bytes are proved needed, which may be many that go by runs.
        while plan == Plan::Rewrite && runs(&mut work).await {
            bytes(&mut work, plan, structured).await;
        }
        extras(&mut work, plan).await;
        let clean = work.reductions();
        let unresolved = singles(&mut work).await;
        if work.reductions() == clean && unresolved && !by_groups {
            // Most bytes are needed only because another bug shows without them.
            by_groups = true;
            grouped(&mut work).await;
        }
        let done = work.reductions() == clean;
        if done && !(plan == Plan::Rewrite && last_form(&mut work, &mut values).await) {
            return;
        }
    }
}

/// Reduces units of which nothing else is known.
pub(super) async fn units(mut work: Workpiece) {
    loop {
        let mut all = Bytes::all(&work, "units", 1, 0);
        List::new(&mut work, &mut all).reduce().await;
        let clean = work.reductions();
        singles(&mut work).await;
        if work.reductions() == clean {
            return;
        }
    }
}

/// Pairs and values, by what a small part of the tests so far allows.
async fn extras(work: &mut Workpiece, plan: Plan) {
    let budget = (work.asked().saturating_sub(CHEAP) / SHARE).min(MOST);
    if work.len() <= FEW {
        let all = work.len() * work.len().saturating_sub(1) / 2;
        pairs(work, if all <= CHEAP_PAIRS { all } else { budget / 2 }).await;
    }
    // A value that takes makes all single deletions open again.
    if plan == Plan::Rewrite && work.len() <= SHORT {
        shortlex(work, budget).await;
    }
}

/// Cuts what was not read in one test.
async fn read_part(work: &mut Workpiece) {
    if let Some(read) = work
        .hints()
        .read
        .filter(|read| (1..work.len()).contains(read))
    {
        let len = work.len();
        work.cut("unread", read..len).await;
    }
}

/// Reduces bytes; where tests are UNRESOLVED, in groups first.
async fn bytes(work: &mut Workpiece, plan: Plan, structured: bool) {
    if plain(work, plan, structured).await {
        return;
    }
    grouped(work).await;
    let mut units = Bytes::all(work, "bytes", 1, 0);
    let mut list = List::new(work, &mut units);
    list.reduce().await;
}

/// Reduces plain bytes: lines, ends, middle, values, and the rest. Says whether it came to its end.
async fn plain(work: &mut Workpiece, plan: Plan, structured: bool) -> bool {
    // What is refused where brackets have to match says nothing of sizes.
    let patience = if structured { usize::MAX } else { PATIENCE };
    lines(work).await;
    let mut units = Bytes::all(work, "bytes", 1, 0);
    let mut list = List::new(work, &mut units).give_up_after(patience);
    let ends = list.ends().await;
    if list.middle(ends).await {
        return true;
    }
    // Where needed bytes lie far apart, values are worth a probe once there are few of them.
    let apart = ends.front == 0 && list.len() > MEDIUM;
    if apart {
        list.sweep(ends).await;
    }
    if list.has_given_up() {
        return false;
    }
    if plan == Plan::Rewrite && work.len() >= NORMALIZED {
        normalize(work).await;
    }
    if apart {
        return true;
    }
    let mut units = Bytes::all(work, "bytes", 1, 0);
    let mut list = List::new(work, &mut units).give_up_after(patience);
    list.sweep(ends).await;
    !list.has_given_up()
}

/// Where the size or the place of a byte decides which bug it is, two bytes go at once.
async fn grouped(work: &mut Workpiece) {
    for skipped in [0, 1] {
        let mut units = Bytes::all(work, "groups", 2, skipped);
        List::new(work, &mut units).reduce().await;
    }
    if work.len() <= FEW {
        pairs(work, FEW * FEW / 2).await;
    }
}

/// Reduces lines, where there are many.
async fn lines(work: &mut Workpiece) {
    // A text without a newline at its beginning has no lines worth looking for.
    if !work.is_text() || !work.sample().contains(&b'\n') {
        return;
    }
    let mut units = Lines::of(work);
    if units.len() > MANY_LINES {
        List::new(work, &mut units).reduce().await;
    }
}
