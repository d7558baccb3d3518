//! What is left to decide, and deciding it at a price.

use std::io;

use super::exact::{Solved, solve};
use super::gather::{Loaded, Reader, Streamed, load};
use super::greedy::greedy;
use super::improve::improved;
use super::matrix::{Column, InMemory, Matrix};
use super::pricing::{LARGE, priced};
use super::reduce::reduce;
use super::sets::{Columns, Sets};
use super::steps::Steps;
use super::weight::weight;
use super::{Effort, Slowness};

/// The steps of a short search.
const SHORT: u64 = 10_000_000;
/// Its cover is close where it costs no more than what is proved and this part of itself.
const CLOSE: u64 = 100;

/// What a file costs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Terms {
    /// By being one, in bytes.
    pub price: u64,
    /// Whether slow inputs are dearer.
    pub timed: bool,
}

impl Terms {
    fn weight(self, bytes: u64, slowness: Slowness) -> u64 {
        let slowness = if self.timed {
            slowness
        } else {
            Slowness::default()
        };
        weight(bytes, slowness, self.price)
    }
}

/// Inputs that have to stay, and a choice among others that is left.
pub(super) struct Core {
    /// They are part of a best cover on any terms.
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

/// A cover on some terms.
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

    /// How many terms may be tried: reading everything anew is dear.
    pub fn trials(&self) -> u32 {
        match self.rest {
            Rest::InMemory(_) => 8,
            Rest::Streamed { .. } => 3,
        }
    }

    /// A cover on these terms.
    pub fn choose(
        &self,
        reader: &mut Reader<'_, impl Sets>,
        terms: Terms,
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
                let Terms { price, timed } = terms;
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

fn in_memory(matrix: &Matrix, terms: Terms, effort: &Effort) -> io::Result<Choice> {
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
    let (chosen, lower) = priced(columns, chosen, effort)?;
    let chosen = improved(columns, &chosen, &mut Steps(effort.steps))?;
    let weight = chosen.iter().map(|column| columns.weight(*column)).sum();
    let items = chosen.iter().map(|column| items[*column] as usize);
    Ok(Choice {
        items: items.collect(),
        weight,
        lower: lower.min(weight),
    })
}
