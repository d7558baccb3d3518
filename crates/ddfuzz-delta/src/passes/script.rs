//! The searches `subset` and `full`: their passes in order.

use std::sync::Arc;

use crate::passes::binary::binary;
use crate::passes::coroutine::{Coroutine, is_search};
use crate::passes::current_best::CurrentBest;
use crate::passes::deletions::{pairs, runs, singles};
use crate::passes::list::List;
use crate::passes::normalize::{LEAST, MOST_TESTS, SMALL, last_form, normalize, shortlex};
use crate::passes::structure::structure;
use crate::passes::units::{Bytes, Lines, Units};

/// Minimizes by deleting, in any order. The result is a subsequence of the input, and 1-minimal
/// where no unit of it can go alone, which its last round of tests shows.
#[derive(Clone)]
pub struct Subset(Coroutine);

impl Subset {
    /// The name of this search on the command line and in logs.
    pub const NAME: &'static str = "subset";

    /// Begins with a text whose test must have been FAIL. What the text looks like decides which
    /// passes are worth trying: lines, brackets, runs of equal bytes.
    pub fn new(text: &[u8]) -> Subset {
        let text: Arc<[u8]> = text.into();
        Subset(Coroutine::new(text.len(), move |asker| {
            let work = CurrentBest::new(asker, text.clone());
            Box::pin(script(work, Plan::Delete))
        }))
    }

    /// Begins with `c✗` of this many units of any kind, whose test must have been FAIL.
    ///
    /// ```
    /// use ddfuzz_delta::{Outcome, Subset, minimize};
    ///
    /// let events: Vec<u32> = (0..1000).collect();
    /// let fails = |kept: &[u32]| match kept.contains(&95) && kept.contains(&896) {
    ///     true => Outcome::Fail,
    ///     false => Outcome::Pass,
    /// };
    /// assert_eq!(minimize(&events, Subset::of_units, fails), Ok(vec![95, 896]));
    /// ```
    pub fn of_units(units: usize) -> Subset {
        Subset(Coroutine::new(units, move |asker| {
            Box::pin(self::units(CurrentBest::of_units(asker, units)))
        }))
    }
}

is_search!(Subset);

/// Minimizes bytes by all passes: it deletes, replaces bytes by `0`, and keeps the numbers of
/// binary formats right. No result is longer than what it was made of.
///
/// The result is 1-minimal where no byte of it can go alone, which its last round of tests shows.
/// No byte of a result of at most [`Full::SMALL`] bytes can become `0` alone, unless that took too
/// many tests: of results of one size it tends to the least in *shortlex* order.
#[derive(Clone)]
pub struct Full(Coroutine);

impl Full {
    /// The name of this search on the command line and in logs.
    pub const NAME: &'static str = "full";

    /// Results of more bytes keep the values that they have come to.
    pub const SMALL: usize = SMALL;

    /// What takes the place of bytes whose values do not matter.
    pub const LEAST: u8 = LEAST;

    /// Begins with a text whose test must have been FAIL.
    pub fn new(text: &[u8]) -> Full {
        let text: Arc<[u8]> = text.into();
        Full(Coroutine::new(text.len(), move |asker| {
            let work = CurrentBest::new(asker, text.clone());
            Box::pin(script(work, Plan::Rewrite))
        }))
    }
}

is_search!(Full);

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
pub(super) async fn script(mut work: CurrentBest, plan: Plan) {
    read_part(&mut work).await;
    // A text may lie in a binary frame.
    let structured = work.is_text() && structure(&mut work).await
        || plan == Plan::Rewrite && binary(&mut work).await;
    let (mut by_groups, mut values) = (structured, MOST_TESTS);
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
pub(super) async fn units(mut work: CurrentBest) {
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
async fn extras(work: &mut CurrentBest, plan: Plan) {
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
async fn read_part(work: &mut CurrentBest) {
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
async fn bytes(work: &mut CurrentBest, plan: Plan, structured: bool) {
    if plain(work, plan, structured).await {
        return;
    }
    grouped(work).await;
    let mut units = Bytes::all(work, "bytes", 1, 0);
    let mut list = List::new(work, &mut units);
    list.reduce().await;
}

/// Reduces plain bytes: lines, ends, middle, values, and the rest. Says whether it came to its end.
async fn plain(work: &mut CurrentBest, plan: Plan, structured: bool) -> bool {
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
async fn grouped(work: &mut CurrentBest) {
    for skipped in [0, 1] {
        let mut units = Bytes::all(work, "groups", 2, skipped);
        List::new(work, &mut units).reduce().await;
    }
    if work.len() <= FEW {
        pairs(work, FEW * FEW / 2).await;
    }
}

/// Reduces lines, where there are many.
async fn lines(work: &mut CurrentBest) {
    // A text without a newline at its beginning has no lines worth looking for.
    if !work.is_text() || !work.sample().contains(&b'\n') {
        return;
    }
    let mut units = Lines::of(work);
    if units.len() > MANY_LINES {
        List::new(work, &mut units).reduce().await;
    }
}
