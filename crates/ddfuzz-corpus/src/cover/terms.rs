//! Finds the terms on which no more is kept than by others.

use std::io;

use super::core::{Choice, Core, Terms};
use super::gather::Reader;
use super::sets::Sets;
use super::{Effort, Slowness};
use crate::Amount;

/// No price above this one makes a difference.
const DEAREST: u64 = 1 << 30;

/// A cover, and the terms on which it was chosen.
pub(super) struct Settled {
    pub choice: Choice,
    pub amount: Amount,
    pub terms: Terms,
}

impl Settled {
    /// Whether there are no more files and no more bytes than allowed.
    fn fits(&self, most: Amount) -> bool {
        self.amount.files <= most.files && self.amount.bytes <= most.bytes
    }

    /// By how much it is over at worst, as a fraction; compared without rounding.
    fn is_closer(&self, other: &Settled, most: Amount) -> bool {
        let excess = |amount: Amount| {
            let files = u128::from(amount.files) * u128::from(most.bytes.max(1));
            let bytes = u128::from(amount.bytes) * u128::from(most.files.max(1));
            files.max(bytes)
        };
        excess(self.amount) < excess(other.amount)
    }
}

/// The cover at the usual price (the mean size of what `most` allows) if it has no more files and no
/// more bytes than `most`; else that at the first price which has. If there is none, times are left
/// out, since a fast input may be a large one. If there still is none, the cover that is over by the
/// least factor.
pub(super) fn settle(
    reader: &mut Reader<'_, impl Sets>,
    core: &Core,
    most: Amount,
    effort: &Effort,
) -> io::Result<Settled> {
    let timed = by_price(reader, core, most, effort, true)?;
    let sets = &*reader.sets;
    let any_slow = (0..sets.len()).any(|item| sets.slowness(item) > Slowness::default());
    if timed.fits(most) || !any_slow {
        return Ok(timed);
    }
    let plain = by_price(reader, core, most, effort, false)?;
    let is_better = plain.fits(most) || plain.is_closer(&timed, most);
    Ok(if is_better { plain } else { timed })
}

/// The same with or without times: a dearer file makes files fewer, a cheaper one makes them smaller.
fn by_price(
    reader: &mut Reader<'_, impl Sets>,
    core: &Core,
    most: Amount,
    effort: &Effort,
    timed: bool,
) -> io::Result<Settled> {
    let start = (most.bytes / most.files.max(1)).clamp(1, DEAREST / 8);
    // The prices between which one fits, if any does.
    let (mut low, mut high, mut price) = (0, DEAREST, start);
    let mut closest = at(reader, core, Terms { price, timed }, effort)?;
    let mut last = closest.amount;
    for _ in 1..core.trials() {
        match (last.files > most.files, last.bytes > most.bytes) {
            (true, false) => low = price,
            (false, true) => high = price,
            // There is no need, or no way to go.
            _ => break,
        }
        let next = between(low, high, start);
        if next == price {
            break;
        }
        price = next;
        let settled = at(reader, core, Terms { price, timed }, effort)?;
        last = settled.amount;
        if settled.is_closer(&closest, most) {
            closest = settled;
        }
    }
    Ok(closest)
}

/// Between two prices: a factor of eight from where it began, then the geometric middle.
fn between(low: u64, high: u64, start: u64) -> u64 {
    let middle = (u128::from(low.max(1)) * u128::from(high)).isqrt() as u64;
    match (low, high) {
        (low, DEAREST) if low == start => start * 8,
        (0, 0..=1) => 0,
        (0, high) if high == start => (start / 8).max(1),
        _ => middle,
    }
}

fn at(
    reader: &mut Reader<'_, impl Sets>,
    core: &Core,
    terms: Terms,
    effort: &Effort,
) -> io::Result<Settled> {
    let choice = core.choose(reader, terms, effort)?;
    let mut amount = Amount::default();
    for item in &choice.items {
        amount.add(reader.sets.bytes(*item));
    }
    Ok(Settled {
        choice,
        amount,
        terms,
    })
}
