//! Loads a set cover instance: numbers the features as rows without gaps, finds inputs with equal
//! rows, and builds the matrix in memory.

use std::io;

use super::{Columns, CostModel, Sets, Slowness};
use crate::{Amount, Feature, Features};

/// Reads which features inputs reach, and returns them as numbers of rows of a set cover instance.
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

    /// Replaces `into` by the numbers of the rows (features) that the input `item` reaches,
    /// ascending.
    pub fn read(&mut self, item: usize, into: &mut Vec<u32>) -> io::Result<()> {
        self.sets.features(item, &mut self.features)?;
        self.universe.rows(&self.features, into);
        Ok(())
    }
}

/// The result of reading all inputs once: which are distinct, and for each row (feature) how many
/// inputs reach it.
pub(super) struct Survey {
    /// Numbers of the inputs that reach at least one feature to cover. An input is left out if
    /// another one reaches exactly the same features and is neither larger nor slower.
    pub distinct: Vec<u32>,
    /// For each row (feature), how many inputs reach it.
    pub holders: Vec<u32>,
    /// For each row (feature), the number of the smallest input that reaches it.
    pub first: Vec<u32>,
    /// Number and size of the inputs that a simple merge would keep: in order of size, each input
    /// that reaches a feature which no earlier input reaches.
    pub by_size: Amount,
}

/// Hash of the set of rows (features) that an input reaches, and the input's number.
type RowHash = ([u64; 2], u32);

/// Reads all inputs once, counts the inputs that reach each row (feature), and finds inputs with
/// equal rows.
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

/// Hashes the row numbers (features) of an input by blake3, and returns the first 128 bits: equal
/// hashes mean equal rows.
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
        // In order of size, inputs that are faster than all smaller ones.
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

/// A set cover instance that is read from the inputs in each pass, because it does not fit into
/// memory.
pub(super) struct Streamed<'a, 'b, S> {
    pub reader: &'a mut Reader<'b, S>,
    pub items: &'a [u32],
    /// For each row (feature), true if it must still be covered.
    pub open: &'a [bool],
    pub terms: CostModel,
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
        let sets = &*self.reader.sets;
        self.terms.weight(sets.bytes(item), sets.slowness(item))
    }

    fn read(&mut self, column: usize, into: &mut Vec<u32>) -> io::Result<()> {
        self.reader.read(self.items[column] as usize, into)?;
        into.retain(|row| self.open[*row as usize]);
        Ok(())
    }
}

/// A set cover instance that was to be loaded into memory: the matrix, or what is known if it is
/// too large.
pub(super) enum Loaded {
    /// The set cover instance fits into memory, as this matrix.
    Whole(Matrix),
    /// The set cover instance is too large for the memory limit. Each of the inputs with the
    /// numbers `sole` is the only one that reaches some feature.
    TooLarge { sole: Vec<u32> },
}

/// Loads the inputs `items`, with those of their rows (features) that are `open` (still to be
/// covered), into memory, unless this takes more than `limit` pairs of an input and a row.
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

/// Numbers the features that must be covered, as the rows of a set cover matrix. It is a bit vector
/// with ranks: one bit for each possible feature, and the number of set bits before each word, so
/// that a look-up reads two words.
pub(super) struct Universe {
    bits: Vec<u64>,
    before: Vec<u32>,
    features: Vec<Feature>,
}

impl Universe {
    /// Returns a numbering of the features of `wanted` that are not in `covered`: each is a row, in
    /// ascending order from 0.
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

    /// Returns the number of rows (features to cover).
    pub fn len(&self) -> usize {
        self.features.len()
    }

    /// Returns the feature that stands for the row number `row` of the set cover instance.
    pub fn feature(&self, row: usize) -> Feature {
        self.features[row]
    }

    /// Returns the number of the set cover row that stands for a feature; `None` if the feature
    /// need not be covered.
    pub fn row(&self, feature: Feature) -> Option<u32> {
        let word = feature.0 as usize / 64;
        let (bits, bit) = (*self.bits.get(word)?, 1_u64 << (feature.0 % 64));
        let rank = (bits & (bit - 1)).count_ones();
        (bits & bit != 0).then(|| self.before[word] + rank)
    }

    /// Replaces `into` by the row numbers of `features`, ascending and without duplicates; features
    /// that need not be covered are left out.
    pub fn rows(&self, features: &[Feature], into: &mut Vec<u32>) {
        into.clear();
        into.extend(features.iter().filter_map(|feature| self.row(*feature)));
        // The counts of holders require this, even if the journal is damaged.
        if !into.is_sorted_by(|one, next| one < next) {
            into.sort_unstable();
            into.dedup();
        }
    }
}

/// A column of a set cover matrix: an input to choose, with its size, slowness and cost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Column {
    /// Number of the input that the column stands for, as in [`super::Sets`].
    pub item: u32,
    pub bytes: u64,
    pub slowness: Slowness,
    /// Cost of keeping the column's input, more than 0.
    pub weight: u64,
}

impl Column {
    /// Makes a column (input) for computing a set cover by weights (costs): it has the number
    /// `item` and the weight `weight`; its size and slowness are set to 0.
    pub fn weighing(item: u32, weight: u64) -> Column {
        Column {
            item,
            bytes: 0,
            slowness: Slowness::default(),
            weight,
        }
    }
}

/// A list of lists of numbers, in which all numbers are stored one after the other in one vector,
/// with the start of each list (compressed sparse rows).
#[derive(Clone, Debug)]
struct Lists {
    starts: Vec<u32>,
    entries: Vec<u32>,
}

impl Lists {
    fn get(&self, list: usize) -> &[u32] {
        &self.entries[self.starts[list] as usize..self.starts[list + 1] as usize]
    }

    /// Transposes lists of numbers: returns, for each number below `numbers`, the indices of the
    /// lists that contain it, ascending.
    fn transposed(&self, numbers: usize) -> Lists {
        let mut starts = vec![0_u32; numbers + 1];
        for entry in &self.entries {
            starts[*entry as usize + 1] += 1;
        }
        for number in 0..numbers {
            starts[number + 1] += starts[number];
        }
        let mut next = starts.clone();
        let mut entries = vec![0; self.entries.len()];
        for (list, bounds) in self.starts.windows(2).enumerate() {
            for entry in &self.entries[bounds[0] as usize..bounds[1] as usize] {
                let place = &mut next[*entry as usize];
                entries[*place as usize] = list as u32;
                *place += 1;
            }
        }
        Lists { starts, entries }
    }
}

/// A sparse set cover matrix, by columns (inputs) and by rows (features). Each row has at least one
/// column.
#[derive(Clone, Debug)]
pub(super) struct Matrix {
    pub columns: Vec<Column>,
    /// For each row (feature) of the matrix: its number in the complete set cover instance. The
    /// matrix may hold only some of that instance's rows.
    pub names: Vec<u32>,
    rows_of: Lists,
    holders_of: Lists,
}

/// Builds a [`Matrix`] from its columns, which are added one by one.
#[derive(Clone)]
pub(super) struct Builder {
    columns: Vec<Column>,
    rows_of: Lists,
}

impl Builder {
    pub fn new() -> Builder {
        Builder {
            columns: Vec::new(),
            rows_of: Lists {
                starts: vec![0],
                entries: Vec::new(),
            },
        }
    }

    /// Returns the number of matrix entries so far: pairs of a column and a row that it covers.
    pub fn entries(&self) -> usize {
        self.rows_of.entries.len()
    }

    /// Returns the weights (costs) of all columns added so far.
    pub fn weights(&self) -> impl Iterator<Item = u64> {
        self.columns.iter().map(|column| column.weight)
    }

    /// Adds a column (input) that covers the rows (features) with the given numbers, which are
    /// ascending; a column without rows is ignored.
    pub fn push(&mut self, column: Column, rows: impl IntoIterator<Item = u32>) {
        let before = self.rows_of.entries.len();
        self.rows_of.entries.extend(rows);
        if self.rows_of.entries.len() > before {
            self.rows_of.starts.push(self.rows_of.entries.len() as u32);
            self.columns.push(column);
        }
    }

    /// Builds the matrix from the columns added so far, and leaves out rows that no column covers.
    /// `names`: for each row, its number in the complete set cover instance.
    pub fn finish(mut self, names: &[u32]) -> Matrix {
        let mut has_holder = vec![false; names.len()];
        for row in &self.rows_of.entries {
            has_holder[*row as usize] = true;
        }
        let mut number = vec![0; names.len()];
        let mut kept = Vec::new();
        for (row, name) in names.iter().enumerate().filter(|(row, _)| has_holder[*row]) {
            number[row] = kept.len() as u32;
            kept.push(*name);
        }
        for row in &mut self.rows_of.entries {
            *row = number[*row as usize];
        }
        let holders_of = self.rows_of.transposed(kept.len());
        Matrix {
            columns: self.columns,
            names: kept,
            rows_of: self.rows_of,
            holders_of,
        }
    }
}

impl Matrix {
    /// Returns the number of rows (features to cover).
    pub fn height(&self) -> usize {
        self.names.len()
    }

    /// Returns the number of columns (inputs to choose from).
    pub fn width(&self) -> usize {
        self.columns.len()
    }

    /// Returns the number of pairs of a column and a row that it covers.
    pub fn entries(&self) -> usize {
        self.rows_of.entries.len()
    }

    /// Returns the numbers of the rows (features) that a column (input) of the matrix covers,
    /// ascending.
    pub fn rows_of(&self, column: usize) -> &[u32] {
        self.rows_of.get(column)
    }

    /// Returns the numbers of the columns (inputs) of the matrix that cover a row (feature),
    /// ascending.
    pub fn holders_of(&self, row: usize) -> &[u32] {
        self.holders_of.get(row)
    }

    /// Returns the sum of the weights (costs) of `columns`.
    pub fn weight_of(&self, columns: &[usize]) -> u64 {
        columns.iter().map(|at| self.columns[*at].weight).sum()
    }

    /// Returns the matrix reduced to the `columns` and `rows` that are marked true; columns without
    /// rows and rows without columns are left out.
    pub fn keep(&self, columns: &[bool], rows: &[bool]) -> Matrix {
        let mut builder = Builder::new();
        for (at, column) in self
            .columns
            .iter()
            .enumerate()
            .filter(|(at, _)| columns[*at])
        {
            let kept = self.rows_of(at).iter().copied();
            builder.push(*column, kept.filter(|row| rows[*row as usize]));
        }
        builder.finish(&self.names)
    }

    /// Returns a copy of the matrix in which each column has the weight (cost) that `weight`
    /// returns.
    pub fn weighed(&self, weight: impl Fn(&Column) -> u64) -> Matrix {
        let mut other = self.clone();
        for column in &mut other.columns {
            column.weight = weight(column);
        }
        other
    }

    /// Splits the matrix into independent parts, which share no row and no column.
    pub fn parts(self) -> Vec<Matrix> {
        let mut part_of_row = vec![usize::MAX; self.height()];
        let mut seen = vec![false; self.width()];
        let mut parts = 0;
        let mut open = Vec::new();
        for first in 0..self.height() {
            if part_of_row[first] != usize::MAX {
                continue;
            }
            part_of_row[first] = parts;
            open.push(first);
            while let Some(row) = open.pop() {
                for column in self.holders_of(row) {
                    if std::mem::replace(&mut seen[*column as usize], true) {
                        continue;
                    }
                    for other in self.rows_of(*column as usize) {
                        if part_of_row[*other as usize] == usize::MAX {
                            part_of_row[*other as usize] = parts;
                            open.push(*other as usize);
                        }
                    }
                }
            }
            parts += 1;
        }
        if parts <= 1 {
            return vec![self];
        }
        let mut builders: Vec<Builder> = (0..parts).map(|_| Builder::new()).collect();
        for (at, column) in self.columns.iter().enumerate() {
            let rows = self.rows_of(at);
            builders[part_of_row[rows[0] as usize]].push(*column, rows.iter().copied());
        }
        let finish = |builder: Builder| builder.finish(&self.names);
        builders.into_iter().map(finish).collect()
    }
}

/// A matrix that is completely in memory, to be read by the same interface ([`Columns`]) as an
/// instance that is read from files; reading never fails.
pub(super) struct InMemory<'a>(pub &'a Matrix);

impl Columns for InMemory<'_> {
    fn columns(&self) -> usize {
        self.0.width()
    }

    fn rows(&self) -> usize {
        self.0.height()
    }

    fn weight(&self, column: usize) -> u64 {
        self.0.columns[column].weight
    }

    fn read(&mut self, column: usize, into: &mut Vec<u32>) -> io::Result<()> {
        into.clear();
        into.extend_from_slice(self.0.rows_of(column));
        Ok(())
    }
}
