//! Reads the inputs: what is needed of them, in memory where it fits.

use std::io;

use super::Slowness;
use super::matrix::{Builder, Column, Matrix};
use super::sets::{Columns, Sets};
use super::universe::Universe;
use super::weight::weight;
use crate::{Amount, Feature};

/// Reads the rows of inputs.
pub(super) struct Reader<'a, S> {
    pub sets: &'a mut S,
    pub universe: &'a Universe,
    features: Vec<Feature>,
}

impl<'a, S: Sets> Reader<'a, S> {
    pub fn new(sets: &'a mut S, universe: &'a Universe) -> Reader<'a, S> {
        Reader {
            sets,
            universe,
            features: Vec::new(),
        }
    }

    /// The rows of an input: replaces what is in `into`.
    pub fn read(&mut self, item: usize, into: &mut Vec<u32>) -> io::Result<()> {
        self.sets.features(item, &mut self.features)?;
        self.universe.rows(&self.features, into);
        Ok(())
    }
}

/// What one look at all inputs tells.
pub(super) struct Survey {
    /// The inputs that have a row, without those that have the same rows as one that is neither
    /// larger nor slower.
    pub distinct: Vec<u32>,
    /// How many inputs have a row, and the first of them.
    pub holders: Vec<u32>,
    pub first: Vec<u32>,
    /// What is kept of inputs that are taken in order if they bring something new.
    pub by_size: Amount,
}

/// Where an input is told from others: 24 bytes, without gaps.
type Mark = ([u64; 2], u32);

/// Looks at all inputs once.
pub(super) fn survey(reader: &mut Reader<'_, impl Sets>) -> io::Result<Survey> {
    let height = reader.universe.len();
    let mut survey = Survey {
        distinct: Vec::new(),
        holders: vec![0; height],
        first: vec![0; height],
        by_size: Amount::default(),
    };
    let (mut marks, mut rows): (Vec<Mark>, _) = (Vec::new(), Vec::new());
    for item in 0..reader.sets.len() {
        reader.read(item, &mut rows)?;
        if rows.is_empty() {
            continue;
        }
        let mut is_new = false;
        for row in &rows {
            let row = *row as usize;
            if survey.holders[row] == 0 {
                survey.first[row] = item as u32;
                is_new = true;
            }
            survey.holders[row] += 1;
        }
        if is_new {
            survey.by_size.add(reader.sets.bytes(item));
        }
        marks.push((mark(&rows), item as u32));
    }
    survey.distinct = distinct(marks, reader.sets);
    Ok(survey)
}

/// Equal for equal rows, and not for others.
fn mark(rows: &[u32]) -> [u64; 2] {
    let mut hasher = blake3::Hasher::new();
    let mut buffer = [0; 1024];
    for rows in rows.chunks(buffer.len() / 4) {
        for (place, row) in buffer.chunks_exact_mut(4).zip(rows) {
            place.copy_from_slice(&row.to_le_bytes());
        }
        hasher.update(&buffer[..4 * rows.len()]);
    }
    let hash = hasher.finalize();
    let half = |at: usize| {
        let bytes = hash.as_bytes()[at..at + 8].iter();
        bytes.fold(0, |sum, byte| sum << 8 | u64::from(*byte))
    };
    [half(0), half(8)]
}

fn distinct(mut marks: Vec<Mark>, sets: &impl Sets) -> Vec<u32> {
    marks.sort_unstable();
    let mut kept = Vec::new();
    for equal in marks.chunk_by(|one, other| one.0 == other.0) {
        // By size, those that are faster than all before.
        let mut equal: Vec<(u64, Slowness, u32)> = equal
            .iter()
            .map(|(_, item)| {
                let at = *item as usize;
                (sets.bytes(at), sets.slowness(at), *item)
            })
            .collect();
        equal.sort_unstable();
        let mut fastest = None;
        for (_, slowness, item) in equal {
            if fastest.is_none_or(|fastest| slowness < fastest) {
                fastest = Some(slowness);
                kept.push(item);
            }
        }
    }
    kept.sort_unstable();
    kept
}

/// Inputs that are read each time anew, at a price.
pub(super) struct Streamed<'a, 'b, S> {
    pub reader: &'a mut Reader<'b, S>,
    pub items: &'a [u32],
    /// Which rows are still to be covered.
    pub open: &'a [bool],
    pub price: u64,
    /// Whether slow inputs are dearer.
    pub timed: bool,
}

impl<S: Sets> Columns for Streamed<'_, '_, S> {
    fn columns(&self) -> usize {
        self.items.len()
    }

    fn rows(&self) -> usize {
        self.open.len()
    }

    fn weight(&self, column: usize) -> u64 {
        let item = self.items[column] as usize;
        let slowness = if self.timed {
            self.reader.sets.slowness(item)
        } else {
            Slowness::default()
        };
        weight(self.reader.sets.bytes(item), slowness, self.price)
    }

    fn read(&mut self, column: usize, into: &mut Vec<u32>) -> io::Result<()> {
        self.reader.read(self.items[column] as usize, into)?;
        into.retain(|row| self.open[*row as usize]);
        Ok(())
    }
}

/// What was found while loading.
pub(super) enum Loaded {
    Whole(Matrix),
    /// It does not fit: for each row that one input alone has, that input.
    TooLarge {
        sole: Vec<u32>,
    },
}

/// Loads these inputs with their open rows, if that is not more than `limit` entries.
pub(super) fn load(
    reader: &mut Reader<'_, impl Sets>,
    items: &[u32],
    open: &[bool],
    limit: usize,
) -> io::Result<Loaded> {
    let names: Vec<u32> = (0..open.len() as u32).collect();
    let mut builder = Some(Builder::new());
    let mut holders = vec![(0_u8, 0_u32); open.len()];
    let mut rows = Vec::new();
    for item in items {
        let at = *item as usize;
        reader.read(at, &mut rows)?;
        rows.retain(|row| open[*row as usize]);
        for row in &rows {
            let holder = &mut holders[*row as usize];
            *holder = (holder.0.saturating_add(1).min(2), *item);
        }
        builder = builder.filter(|builder| builder.entries() + rows.len() <= limit);
        if let Some(builder) = &mut builder {
            let column = Column {
                item: *item,
                bytes: reader.sets.bytes(at),
                slowness: reader.sets.slowness(at),
                weight: 1,
            };
            builder.push(column, rows.iter().copied());
        }
    }
    Ok(match builder {
        Some(builder) => Loaded::Whole(builder.finish(&names)),
        None => {
            let sole = holders.iter().filter(|(count, _)| *count == 1);
            let mut sole: Vec<u32> = sole.map(|(_, item)| *item).collect();
            sole.sort_unstable();
            sole.dedup();
            Loaded::TooLarge { sole }
        }
    })
}
