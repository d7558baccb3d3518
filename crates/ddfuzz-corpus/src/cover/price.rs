//! Chooses a cover (a set of inputs that reaches all features), and with it the price of a file:
//! the number of bytes that one more file costs beside its size. The price is changed until the
//! cover has no more files and no more bytes than the covers of other tools.
//!
//! A large instance is solved by column generation ([`solve_by_pricing`]): it starts with a few
//! good columns (inputs) of each row (feature) in memory, finds prices of rows for these, and adds
//! other columns that pay at these prices (Caprara, Fischetti and Toth 1999). The prices also give
//! a lower bound for the complete instance.

use std::collections::HashSet;
use std::io;

use super::exact::{DualAscent, RowPrices, Solved, Steps, bound, solve};
use super::greedy::{greedy, improved};
use super::matrix::{Builder, Column, InMemory, Loaded, Matrix, Reader, Streamed, Survey, load};
use super::reduce::reduce;
use super::{Columns, CostModel, Effort, Sets, Slowness};
use crate::Amount;

/// Maximum number of elementary steps of a short search for a set cover (a subset of the inputs
/// that reaches all features). A longer search follows only if the cover found is far from the
/// lower bound.
const SHORT: u64 = 10_000_000;
/// Divisor of a cover's weight (total cost): a cover from a short search is good enough if its
/// weight exceeds the lower bound by at most its weight divided by this number.
const CLOSE_DIVISOR: u64 = 100;

/// What remains of a set cover instance after reductions that hold for any price of a file (bytes
/// added to the size of each input): the inputs that are in every best cover, and the inputs among
/// which there is a choice.
pub(super) struct Core {
    /// Numbers of inputs that a best cover contains at any price of a file (bytes added to the size
    /// of each input).
    forced: Vec<u32>,
    rest: Rest,
}

enum Rest {
    InMemory(Matrix),
    /// The inputs to choose from do not fit into memory with their features: only their numbers are
    /// held, and for each row (feature) whether it must still be covered.
    Streamed {
        items: Vec<u32>,
        open: Vec<bool>,
    },
}

/// A set cover with its weight (total cost) at one price of a file (bytes added to the size of each
/// input).
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Choice {
    /// Numbers of the inputs that the cover contains, ascending.
    pub items: Vec<usize>,
    pub weight: u64,
    /// Lower bound of the weight (total cost) of any cover at the same price of a file.
    pub lower: u64,
}

impl Core {
    /// Returns what remains of the set cover instance of the inputs `items` after reductions:
    /// inputs that alone reach a feature are chosen at once, and only the features that they do not
    /// reach are left to be covered. Loads the rest into memory if it fits within the limits
    /// `effort`.
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

    /// Returns the maximum number of prices of a file (bytes added to the size of each input) that
    /// are tried: fewer for an instance that does not fit into memory, since all inputs are read
    /// again for each price.
    pub fn trials(&self) -> u32 {
        match self.rest {
            Rest::InMemory(_) => 8,
            Rest::Streamed { .. } => 3,
        }
    }

    /// Finds a cover whose weight is small by the cost model `terms` (price of a file, and whether
    /// time counts), and a lower bound of the weight of any cover. The search is limited by
    /// `effort`.
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

/// Searches for the cover of least weight (total cost), at first for a short time. If the weight of
/// the found cover is not close to the lower bound, searches again for as long as `effort` permits;
/// otherwise a long search would gain next to nothing (docs/decisions/0104).
fn searched(matrix: &Matrix, effort: &Effort) -> Solved {
    let short = effort.steps.min(SHORT);
    let solved = solve(matrix.clone(), effort.nodes, short);
    let gap = solved.weight - solved.lower;
    match gap.saturating_mul(CLOSE_DIVISOR) <= solved.weight || short == effort.steps {
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

/// Greatest price of a file that is tried. The price is a number of bytes that is added to the size
/// of each input, so that covers with fewer files are preferred. Greater prices would choose the
/// same covers.
const DEAREST: u64 = 1 << 30;

/// A set cover with its number of files and bytes, and the cost model that was used to choose it.
pub(super) struct PricedCover {
    pub choice: Choice,
    pub amount: Amount,
    pub terms: CostModel,
}

impl PricedCover {
    /// Returns true if the cover has at most as many files, and at most as many bytes, as `most`;
    /// else false.
    fn fits(&self, most: Amount) -> bool {
        self.amount.files <= most.files && self.amount.bytes <= most.bytes
    }

    /// Returns true if this cover exceeds the limits `most` (number of files, and bytes) by a
    /// smaller factor than the cover `other`. The factor is the number of files or of bytes of a
    /// cover, divided by its limit, whichever is greater.
    fn is_closer(&self, other: &PricedCover, most: Amount) -> bool {
        let excess = |amount: Amount| {
            let files = u128::from(amount.files) * u128::from(most.bytes.max(1));
            let bytes = u128::from(amount.bytes) * u128::from(most.files.max(1));
            files.max(bytes)
        };
        excess(self.amount) < excess(other.amount)
    }
}

/// Searches for a cover with at most as many files and bytes as `most`, by trying prices of a file:
/// numbers of bytes that are added to the size of each input. If none is found, tries again without
/// higher costs for slow inputs, since a fast input may be large. If there still is none, returns
/// the cover that exceeds `most` by the least factor.
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

/// Tries prices of a file (bytes added to the size of each input) until a cover has at most the
/// files and bytes of `most`: a higher price to get fewer files, a lower one to get fewer bytes.
/// Returns that cover; if there is none, the one that exceeds `most` least. If `timed`, slow inputs
/// cost more.
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
    let mut closest = cover_at(reader, core, CostModel { price, timed }, effort)?;
    let mut last = closest.amount;
    for _ in 1..core.trials() {
        match (last.files > most.files, last.bytes > most.bytes) {
            (true, false) => low = price,
            (false, true) => high = price,
            // The cover fits, or exceeds both limits.
            _ => break,
        }
        let next = next_price(low, high, start);
        if next == price {
            break;
        }
        price = next;
        let settled = cover_at(reader, core, CostModel { price, timed }, effort)?;
        last = settled.amount;
        if settled.is_closer(&closest, most) {
            closest = settled;
        }
    }
    Ok(closest)
}

/// Returns the price of a file to try next, when the searched price is between `low` and `high`: if
/// only `start` was tried so far, 8 times `start` or an eighth of it; later the geometric mean of
/// `low` and `high`.
fn next_price(low: u64, high: u64, start: u64) -> u64 {
    let middle = (u128::from(low.max(1)) * u128::from(high)).isqrt() as u64;
    match (low, high) {
        (low, DEAREST) if low == start => start * 8,
        (0, 0..=1) => 0,
        (0, high) if high == start => (start / 8).max(1),
        _ => middle,
    }
}

fn cover_at(
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

/// Number of matrix entries (pairs of an input and a feature) beyond which column generation is
/// better than solving the whole matrix.
pub(super) const LARGE: usize = 100_000;
/// Number of rounds of column generation; each adds columns (inputs) to those in memory.
const TURNS: usize = 3;
/// Maximum number of subgradient steps, which raise the lower bound, in each round of column
/// generation (which reads further columns, the inputs).
const ROUNDS: u32 = 200;
/// Number of columns (inputs) that each round of column generation adds for each row (feature).
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

/// Those columns (inputs) of a set cover instance that are in memory at present, because the whole
/// instance is too large for memory (column generation).
struct ColumnSample {
    builder: Builder,
    known: HashSet<usize>,
    limit: usize,
}

impl ColumnSample {
    /// Reads those columns (inputs) of `more` that are not in memory yet. Returns true if they fit.
    /// Returns false if all columns together exceed the memory limit; some of `more` may have been
    /// read in this case, too.
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

/// Returns, for each row (feature), the columns (inputs) that cover it with the least `value`, at
/// most [`OF_EACH_ROW`] for each row. The list begins with the best column of each row, then has
/// the second best of each, and so on, so that a memory limit cuts off the worst.
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

/// Returns the fewest files and the fewest bytes that the cleanup algorithms of other tools would
/// keep:
///
/// - `libFuzzer -merge=1` and `cargo fuzz cmin`: in order of size, each input that adds a feature.
/// - `afl-cmin`: for each uncovered feature, rare features first, the smallest input that reaches
///   it.
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
