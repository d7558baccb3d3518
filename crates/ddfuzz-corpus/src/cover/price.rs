//! Chooses a cover: the price of a file is raised until no more is kept than other tools keep.
//!
//! An instance that does not fit into memory is solved through one that does
//! ([`solve_by_pricing`]): a few good columns of each row are taken into memory, and the prices of
//! rows are found there. At these prices all other columns are looked at, and those that would pay
//! are taken in as well (Caprara, Fischetti and Toth 1999). The prices also bound the whole from
//! below.

use std::collections::HashSet;
use std::io;

use super::bound::{Ascent, RowPrices, bound};
use super::exact::{Solved, Steps, solve};
use super::gather::{Loaded, Reader, Streamed, Survey, load};
use super::greedy::{greedy, improved};
use super::matrix::{Builder, Column, InMemory, Matrix};
use super::reduce::reduce;
use super::{Columns, Effort, Sets, Slowness, weight};
use crate::Amount;

/// The steps of a short search.
const SHORT: u64 = 10_000_000;
/// Its cover is close where it costs no more than what is proved and this part of itself.
const CLOSE: u64 = 100;

/// What an input costs: its bytes and its slowness, and a price for being a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct CostModel {
    /// The price of a file, in bytes.
    pub price: u64,
    /// Whether slow inputs cost more.
    pub timed: bool,
}

impl CostModel {
    fn weight(self, bytes: u64, slowness: Slowness) -> u64 {
        let slowness = if self.timed {
            slowness
        } else {
            Slowness::default()
        };
        weight(bytes, slowness, self.price)
    }
}

/// The reduced instance: inputs that some best cover has, and the remaining choice.
pub(super) struct Core {
    /// Inputs of a best cover at any price.
    forced: Vec<u32>,
    rest: Rest,
}

enum Rest {
    InMemory(Matrix),
    /// These inputs, for the rows that are open.
    Streamed {
        items: Vec<u32>,
        open: Vec<bool>,
    },
}

/// A cover at some price.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Choice {
    /// The inputs, ascending.
    pub items: Vec<usize>,
    pub weight: u64,
    /// No cover costs less.
    pub lower: u64,
}

impl Core {
    /// Of these inputs, which together hold all rows that can be covered.
    pub fn new(
        reader: &mut Reader<'_, impl Sets>,
        items: Vec<u32>,
        effort: &Effort,
    ) -> io::Result<Core> {
        let limit = effort.entries.min(u32::MAX as usize);
        let mut open = vec![true; reader.universe.len()];
        let sole = match load(reader, &items, &open, limit)? {
            Loaded::Whole(matrix) => return Ok(Core::reduced(Vec::new(), matrix, effort)),
            Loaded::TooLarge { sole } => sole,
        };
        let mut rows = Vec::new();
        for item in &sole {
            reader.read(*item as usize, &mut rows)?;
            rows.iter().for_each(|row| open[*row as usize] = false);
        }
        Ok(match load(reader, &items, &open, limit)? {
            Loaded::Whole(matrix) => Core::reduced(sole, matrix, effort),
            // No row is left with a single input.
            Loaded::TooLarge { .. } => Core {
                forced: sole,
                rest: Rest::Streamed { items, open },
            },
        })
    }

    fn reduced(mut forced: Vec<u32>, matrix: Matrix, effort: &Effort) -> Core {
        // What is neither larger nor slower is not dearer on any terms.
        let no_dearer = |one: &Column, other: &Column| {
            one.bytes <= other.bytes && one.slowness <= other.slowness
        };
        let reduced = reduce(matrix, no_dearer, &mut Steps(effort.steps));
        forced.extend(reduced.forced.iter().map(|column| column.item));
        Core {
            forced,
            rest: Rest::InMemory(reduced.rest),
        }
    }

    /// How many prices may be tried: a streamed instance is read again for each.
    pub fn trials(&self) -> u32 {
        match self.rest {
            Rest::InMemory(_) => 8,
            Rest::Streamed { .. } => 3,
        }
    }

    /// A cover by this cost model.
    pub fn choose(
        &self,
        reader: &mut Reader<'_, impl Sets>,
        terms: CostModel,
        effort: &Effort,
    ) -> io::Result<Choice> {
        let forced = self.forced.iter().map(|item| {
            let item = *item as usize;
            terms.weight(reader.sets.bytes(item), reader.sets.slowness(item))
        });
        let forced: u64 = forced.sum();
        let mut choice = match &self.rest {
            Rest::InMemory(matrix) => in_memory(matrix, terms, effort)?,
            Rest::Streamed { items, open } => {
                let CostModel { price, timed } = terms;
                let mut columns = Streamed {
                    reader,
                    items,
                    open,
                    price,
                    timed,
                };
                streamed(&mut columns, items, effort)?
            }
        };
        choice.weight += forced;
        choice.lower += forced;
        choice
            .items
            .extend(self.forced.iter().map(|item| *item as usize));
        choice.items.sort_unstable();
        Ok(choice)
    }
}

fn in_memory(matrix: &Matrix, terms: CostModel, effort: &Effort) -> io::Result<Choice> {
    let matrix = matrix.weighed(|column| terms.weight(column.bytes, column.slowness));
    if matrix.entries() > LARGE {
        let items: Vec<u32> = matrix.columns.iter().map(|column| column.item).collect();
        return streamed(&mut InMemory(&matrix), &items, effort);
    }
    let solved = searched(&matrix, effort);
    let column_of = |item: u32| matrix.columns.partition_point(|column| column.item < item);
    let mut best: Vec<usize> = solved.cover.iter().map(|one| column_of(one.item)).collect();
    best.sort_unstable();
    if solved.lower < solved.weight {
        let mut columns = InMemory(&matrix);
        for start in [best.clone(), greedy(&mut columns)?] {
            let other = improved(&mut columns, &start, &mut Steps(effort.steps))?;
            if matrix.weight_of(&other) < matrix.weight_of(&best) {
                best = other;
            }
        }
    }
    Ok(Choice {
        weight: matrix.weight_of(&best),
        lower: solved.lower,
        items: best
            .iter()
            .map(|at| matrix.columns[*at].item as usize)
            .collect(),
    })
}

/// What the search finds. A long one is made only where a short one has not come close: it would
/// find next to nothing (docs/decisions/0104).
fn searched(matrix: &Matrix, effort: &Effort) -> Solved {
    let short = effort.steps.min(SHORT);
    let solved = solve(matrix.clone(), effort.nodes, short);
    let gap = solved.weight - solved.lower;
    match gap.saturating_mul(CLOSE) <= solved.weight || short == effort.steps {
        true => solved,
        false => solve(matrix.clone(), effort.nodes, effort.steps),
    }
}

fn streamed(columns: &mut impl Columns, items: &[u32], effort: &Effort) -> io::Result<Choice> {
    let chosen = greedy(columns)?;
    let chosen = improved(columns, &chosen, &mut Steps(effort.steps))?;
    let (chosen, lower) = solve_by_pricing(columns, chosen, effort)?;
    let chosen = improved(columns, &chosen, &mut Steps(effort.steps))?;
    let weight = chosen.iter().map(|column| columns.weight(*column)).sum();
    let items = chosen.iter().map(|column| items[*column] as usize);
    Ok(Choice {
        items: items.collect(),
        weight,
        lower: lower.min(weight),
    })
}

/// No price above this one makes a difference.
const DEAREST: u64 = 1 << 30;

/// A cover, and the cost model by which it was chosen.
pub(super) struct PricedCover {
    pub choice: Choice,
    pub amount: Amount,
    pub terms: CostModel,
}

impl PricedCover {
    /// Whether there are no more files and no more bytes than allowed.
    fn fits(&self, most: Amount) -> bool {
        self.amount.files <= most.files && self.amount.bytes <= most.bytes
    }

    /// By how much it is over at worst, as a fraction; compared without rounding.
    fn is_closer(&self, other: &PricedCover, most: Amount) -> bool {
        let excess = |amount: Amount| {
            let files = u128::from(amount.files) * u128::from(most.bytes.max(1));
            let bytes = u128::from(amount.bytes) * u128::from(most.files.max(1));
            files.max(bytes)
        };
        excess(self.amount) < excess(other.amount)
    }
}

/// The cover at the usual price (the mean size of what `most` allows) if it has no more files and
/// no more bytes than `most`; else that at the first price which has. If there is none, times are
/// left out, since a fast input may be a large one. If there still is none, the cover that is over
/// by the least factor.
pub(super) fn find_price(
    reader: &mut Reader<'_, impl Sets>,
    core: &Core,
    most: Amount,
    effort: &Effort,
) -> io::Result<PricedCover> {
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

/// The same with or without times: a dearer file makes files fewer, a cheaper one makes them
/// smaller.
fn by_price(
    reader: &mut Reader<'_, impl Sets>,
    core: &Core,
    most: Amount,
    effort: &Effort,
    timed: bool,
) -> io::Result<PricedCover> {
    let start = (most.bytes / most.files.max(1)).clamp(1, DEAREST / 8);
    // The prices between which one fits, if any does.
    let (mut low, mut high, mut price) = (0, DEAREST, start);
    let mut closest = at(reader, core, CostModel { price, timed }, effort)?;
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
        let settled = at(reader, core, CostModel { price, timed }, effort)?;
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
    terms: CostModel,
    effort: &Effort,
) -> io::Result<PricedCover> {
    let choice = core.choose(reader, terms, effort)?;
    let mut amount = Amount::default();
    for item in &choice.items {
        amount.add(reader.sets.bytes(*item));
    }
    Ok(PricedCover {
        choice,
        amount,
        terms,
    })
}

/// Beyond so many entries, some columns at a time lead further than all of them in the same steps.
pub(super) const LARGE: usize = 100_000;
/// How often prices are looked for.
const TURNS: usize = 3;
/// Rounds of the bound at each turn.
const ROUNDS: u32 = 200;
/// How many columns of each row are taken at each turn.
const OF_EACH_ROW: usize = 6;

/// A better cover than `chosen`, if one is found, and a weight that no cover is below.
pub(super) fn solve_by_pricing(
    columns: &mut impl Columns,
    chosen: Vec<usize>,
    effort: &Effort,
) -> io::Result<(Vec<usize>, u64)> {
    let mut few = ColumnSample {
        builder: Builder::new(),
        known: HashSet::new(),
        limit: effort.entries.min(u32::MAX as usize),
    };
    if !few.take(columns, &chosen)? {
        let lower = Ascent::new(columns)?.bound(columns)?;
        return Ok((chosen, lower));
    }
    let upper: u64 = chosen.iter().map(|column| columns.weight(*column)).sum();
    // More would leave too few rounds for each.
    few.limit = few.limit.min(LARGE.max(4 * few.builder.entries()));
    // By what a row costs on average.
    let good = best_of_rows(columns, |weight, rows| {
        (weight << 16) as i128 / rows.len() as i128
    })?;
    few.take(columns, &good)?;
    let mut prices = RowPrices::new(columns.rows(), few.total());
    let mut steps = Steps(effort.steps);
    let rounds = |matrix: &Matrix| {
        let each = 3 * (TURNS as u64 + 1) * matrix.entries().max(1) as u64;
        (effort.steps / each).min(u64::from(ROUNDS)) as u32
    };
    for _ in 0..TURNS {
        let matrix = few.matrix(columns.rows());
        bound(&matrix, &mut prices, rounds(&matrix), upper, &mut steps);
        let of_row: Vec<i64> = prices.iter().map(|(price, _)| price).collect();
        let paying = best_of_rows(columns, |weight, rows| {
            let brought: i128 = rows
                .iter()
                .map(|row| i128::from(of_row[*row as usize]))
                .sum();
            i128::from(prices.scaled(weight)) - brought
        })?;
        few.take(columns, &paying)?;
    }
    let matrix = few.matrix(columns.rows());
    bound(&matrix, &mut prices, rounds(&matrix), upper, &mut steps);
    let lower = Ascent::from_prices(prices.iter()).bound(columns)?;
    let solved = solve(matrix, effort.nodes, effort.steps);
    let found: Vec<usize> = solved.cover.iter().map(|one| one.item as usize).collect();
    let is_better = solved.weight < upper;
    Ok((if is_better { found } else { chosen }, lower))
}

/// Columns in memory.
struct ColumnSample {
    builder: Builder,
    known: HashSet<usize>,
    limit: usize,
}

impl ColumnSample {
    /// Takes these in that are not there, as far as there is room; false where there was not.
    fn take(&mut self, columns: &mut impl Columns, more: &[usize]) -> io::Result<bool> {
        let mut rows = Vec::new();
        for column in more {
            if !self.known.insert(*column) {
                continue;
            }
            columns.read(*column, &mut rows)?;
            if self.builder.entries() + rows.len() > self.limit {
                return Ok(false);
            }
            let weight = columns.weight(*column);
            let taken = Column::weighing(*column as u32, weight);
            self.builder.push(taken, rows.iter().copied());
        }
        Ok(true)
    }

    fn total(&self) -> u64 {
        self.builder.weights().sum()
    }

    fn matrix(&self, rows: usize) -> Matrix {
        let names: Vec<u32> = (0..rows as u32).collect();
        self.builder.clone().finish(&names)
    }
}

/// The columns with the least values in each row: those that are best anywhere first, so that a
/// limit cuts off the least.
fn best_of_rows(
    columns: &mut impl Columns,
    value: impl Fn(u64, &[u32]) -> i128,
) -> io::Result<Vec<usize>> {
    let mut best: Vec<Vec<(i128, u32)>> = vec![Vec::new(); columns.rows()];
    let mut rows = Vec::new();
    for column in 0..columns.columns() {
        columns.read(column, &mut rows)?;
        if rows.is_empty() {
            continue;
        }
        let entry = (value(columns.weight(column), &rows), column as u32);
        for row in &rows {
            let best = &mut best[*row as usize];
            if best.len() < OF_EACH_ROW || best.last().is_some_and(|last| entry < *last) {
                best.truncate(OF_EACH_ROW - 1);
                let place = best.partition_point(|other| *other < entry);
                best.insert(place, entry);
            }
        }
    }
    let mut order = Vec::new();
    for rank in 0..OF_EACH_ROW {
        let ranked = best.iter().filter_map(|best| best.get(rank));
        order.extend(ranked.map(|(_, column)| *column as usize));
    }
    Ok(order)
}

/// The fewest files and the fewest bytes that either way of the peers keeps of the same inputs,
/// each for itself:
///
/// - libFuzzer's `-merge=1`, and with it `cargo fuzz cmin`: by size, each input that brings
///   something new.
/// - `afl-cmin`: feature by feature, those with the fewest inputs first, the smallest of its inputs,
///   if none of those kept has it.
pub(super) fn least_of_other_tools(
    reader: &mut Reader<'_, impl Sets>,
    survey: &Survey,
) -> io::Result<Amount> {
    let rarest = rarest_first(reader, survey)?;
    Ok(Amount {
        files: rarest.files.min(survey.by_size.files),
        bytes: rarest.bytes.min(survey.by_size.bytes),
    })
}

fn rarest_first(reader: &mut Reader<'_, impl Sets>, survey: &Survey) -> io::Result<Amount> {
    let holders = &survey.holders;
    let mut order: Vec<usize> = (0..holders.len()).filter(|row| holders[*row] > 0).collect();
    order.sort_by_key(|row| (holders[*row], *row));
    let mut covered = vec![false; holders.len()];
    let (mut kept, mut rows) = (Amount::default(), Vec::new());
    for row in order {
        if covered[row] {
            continue;
        }
        let item = survey.first[row];
        reader.read(item as usize, &mut rows)?;
        rows.iter().for_each(|row| covered[*row as usize] = true);
        kept.add(reader.sets.bytes(item as usize));
    }
    Ok(kept)
}
