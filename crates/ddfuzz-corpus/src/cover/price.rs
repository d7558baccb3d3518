//! Chooses a cover, and the price of a file: it is changed until the cover has no more files and no
//! more bytes than those of other tools.
//!
//! A large instance is solved by column generation ([`solve_by_pricing`]): it starts with a few
//! good columns of each row in memory, finds prices of rows there, and adds other columns that pay
//! at these prices (Caprara, Fischetti and Toth 1999). The prices also give a lower bound of the
//! whole.

use std::collections::HashSet;
use std::io;

use super::exact::{DualAscent, RowPrices, Solved, Steps, bound, solve};
use super::greedy::{greedy, improved};
use super::matrix::{Builder, Column, InMemory, Loaded, Matrix, Reader, Streamed, Survey, load};
use super::reduce::reduce;
use super::{Columns, CostModel, Effort, Sets, Slowness};
use crate::Amount;

/// Steps of the short search that is made first.
const SHORT: u64 = 10_000_000;
/// A search is close enough if the gap to the lower bound is at most 1/100 of the weight.
const CLOSE: u64 = 100;

/// The reduced instance: inputs of every best cover, and the rest to choose from.
pub(super) struct Core {
    /// Inputs of a best cover at any price.
    forced: Vec<u32>,
    rest: Rest,
}

enum Rest {
    InMemory(Matrix),
    /// Inputs to choose from, and whether each row must still be covered.
    Streamed {
        items: Vec<u32>,
        open: Vec<bool>,
    },
}

/// A cover with its weight at one price of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Choice {
    /// Numbers of the chosen inputs, ascending.
    pub items: Vec<usize>,
    pub weight: u64,
    /// Lower bound of the weight of any cover.
    pub lower: u64,
}

impl Core {
    /// Reduces the instance of these inputs.
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
            // Every row left has several inputs.
            Loaded::TooLarge { .. } => Core {
                forced: sole,
                rest: Rest::Streamed { items, open },
            },
        })
    }

    fn reduced(mut forced: Vec<u32>, matrix: Matrix, effort: &Effort) -> Core {
        // A column that is neither larger nor slower costs no more at any price.
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

    /// Most prices to try; fewer for a streamed instance, which is read again for each.
    pub fn trials(&self) -> u32 {
        match self.rest {
            Rest::InMemory(_) => 8,
            Rest::Streamed { .. } => 3,
        }
    }

    /// Finds a cover with this cost model.
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
                let mut columns = Streamed {
                    reader,
                    items,
                    open,
                    terms,
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

/// Searches the least cover. A short search is enough if its cover is close to the lower bound: a
/// long one would find next to nothing then (docs/decisions/0104).
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

/// Greatest price of a file, in bytes; higher ones make no difference.
const DEAREST: u64 = 1 << 30;

/// A cover, and the cost model by which it was chosen.
pub(super) struct PricedCover {
    pub choice: Choice,
    pub amount: Amount,
    pub terms: CostModel,
}

impl PricedCover {
    /// Whether the cover has at most as many files and bytes as `most`.
    fn fits(&self, most: Amount) -> bool {
        self.amount.files <= most.files && self.amount.bytes <= most.bytes
    }

    /// Whether the larger of its ratios to `most` (files and bytes) is less than that of `other`.
    fn is_closer(&self, other: &PricedCover, most: Amount) -> bool {
        let excess = |amount: Amount| {
            let files = u128::from(amount.files) * u128::from(most.bytes.max(1));
            let bytes = u128::from(amount.bytes) * u128::from(most.files.max(1));
            files.max(bytes)
        };
        excess(self.amount) < excess(other.amount)
    }
}

/// Returns the cover at the first price with at most as many files and bytes as `most`, beginning
/// with the mean file size of `most`. If there is none, slow inputs cost no more than others, since
/// a fast input may be large. If there still is none, returns the cover that exceeds `most` by the
/// least factor.
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

/// Searches the price with or without times: a higher price makes files fewer, a lower one smaller.
fn by_price(
    reader: &mut Reader<'_, impl Sets>,
    core: &Core,
    most: Amount,
    effort: &Effort,
    timed: bool,
) -> io::Result<PricedCover> {
    let start = (most.bytes / most.files.max(1)).clamp(1, DEAREST / 8);
    // A fitting price, if any, is between `low` and `high`.
    let (mut low, mut high, mut price) = (0, DEAREST, start);
    let mut closest = at(reader, core, CostModel { price, timed }, effort)?;
    let mut last = closest.amount;
    for _ in 1..core.trials() {
        match (last.files > most.files, last.bytes > most.bytes) {
            (true, false) => low = price,
            (false, true) => high = price,
            // The cover fits, or exceeds both limits.
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

/// Returns the next price to try: `start` times or divided by 8, then the geometric mean.
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

/// Number of entries beyond which column generation is better than solving the whole matrix.
pub(super) const LARGE: usize = 100_000;
/// How often columns are added to those in memory.
const TURNS: usize = 3;
/// Rounds of the bound in each round of column generation.
const ROUNDS: u32 = 200;
/// Number of columns per row that are added in each round.
const OF_EACH_ROW: usize = 6;

/// Improves the cover `chosen` by column generation; returns the better cover and a lower bound of
/// the weight of any cover.
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
        let lower = DualAscent::new(columns)?.bound(columns)?;
        return Ok((chosen, lower));
    }
    let upper: u64 = chosen.iter().map(|column| columns.weight(*column)).sum();
    // A larger sample would leave too few rounds.
    few.limit = few.limit.min(LARGE.max(4 * few.builder.entries()));
    // The columns with the least cost per row.
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
    let lower = DualAscent::from_prices(prices.iter()).bound(columns)?;
    let solved = solve(matrix, effort.nodes, effort.steps);
    let found: Vec<usize> = solved.cover.iter().map(|one| one.item as usize).collect();
    let is_better = solved.weight < upper;
    Ok((if is_better { found } else { chosen }, lower))
}

/// The columns in memory, for column generation.
struct ColumnSample {
    builder: Builder,
    known: HashSet<usize>,
    limit: usize,
}

impl ColumnSample {
    /// Adds columns that are not in memory; false if they exceed the limit.
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

/// Returns the columns with the least values in each row, ordered by their rank in a row, so that a
/// limit removes the worst.
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

/// Returns the fewest files and the fewest bytes that the algorithms of other tools keep:
///
/// - `libFuzzer -merge=1` and `cargo fuzz cmin`: in order of size, each input that adds a feature.
/// - `afl-cmin`: for each uncovered feature, those with the fewest inputs first, its smallest
///   input.
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
