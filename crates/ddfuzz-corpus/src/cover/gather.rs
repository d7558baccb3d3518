//! Reads what all inputs reach: numbers the features without gaps, counts, and loads a matrix.

use std::io;

use super::matrix::{Builder, Column, Matrix};
use super::{Columns, Sets, Slowness, weight};
use crate::{Amount, Feature, Features};

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
type RowHash = ([u64; 2], u32);

/// Looks at all inputs once.
pub(super) fn survey(reader: &mut Reader<'_, impl Sets>) -> io::Result<Survey> {
    let height = reader.universe.len();
    let mut survey = Survey {
        distinct: Vec::new(),
        holders: vec![0; height],
        first: vec![0; height],
        by_size: Amount::default(),
    };
    let (mut marks, mut rows): (Vec<RowHash>, _) = (Vec::new(), Vec::new());
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

fn distinct(mut marks: Vec<RowHash>, sets: &impl Sets) -> Vec<u32> {
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

/// The rows of a cover: what is wanted and not covered yet. A bit for each feature up to the
/// greatest, and for each 64 of them how many stand before: a look-up touches two words.
pub(super) struct Universe {
    bits: Vec<u64>,
    before: Vec<u32>,
    features: Vec<Feature>,
}

impl Universe {
    /// Of what is in `wanted` but not in `covered`.
    pub fn new(wanted: &Features, covered: &Features) -> Universe {
        let features = wanted.less(covered).as_slice().to_vec();
        let words = features.last().map_or(0, |last| last.0 as usize / 64 + 1);
        let mut bits = vec![0_u64; words];
        for feature in &features {
            bits[feature.0 as usize / 64] |= 1 << (feature.0 % 64);
        }
        let mut sum = 0;
        let before = bits.iter().map(|word| {
            let before = sum;
            sum += word.count_ones();
            before
        });
        let before = before.collect();
        Universe {
            bits,
            before,
            features,
        }
    }

    /// How many rows there are.
    pub fn len(&self) -> usize {
        self.features.len()
    }

    /// The feature of a row.
    pub fn feature(&self, row: usize) -> Feature {
        self.features[row]
    }

    /// The row of a feature, if it counts.
    pub fn row(&self, feature: Feature) -> Option<u32> {
        let word = feature.0 as usize / 64;
        let (bits, bit) = (*self.bits.get(word)?, 1_u64 << (feature.0 % 64));
        let rank = (bits & (bit - 1)).count_ones();
        (bits & bit != 0).then(|| self.before[word] + rank)
    }

    /// The rows of these features, ascending, each once.
    pub fn rows(&self, features: &[Feature], into: &mut Vec<u32>) {
        into.clear();
        into.extend(features.iter().filter_map(|feature| self.row(*feature)));
        // Counts of holders rest on it, whatever a journal says.
        if !into.is_sorted_by(|one, next| one < next) {
            into.sort_unstable();
            into.dedup();
        }
    }
}
