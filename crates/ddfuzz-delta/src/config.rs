//! Configurations: sets of kept units, their set operations, and their division into parts.

use std::{fmt, ops::Range, sync::Arc};

/// Identifies a set of kept units, so that a configuration that was tested before is recognized in
/// O(1).
///
/// The id is the sum of fixed pseudo-random 128-bit values, one for each kept unit. The value of
/// unit `i` is `mix(i + 1) − mix(i)`, so the id of a range takes two calls of `mix`, however long
/// the range is. Equal sets have equal ids; two different sets have equal ids with a probability of
/// about 2⁻¹²⁸.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct ConfigId(u128);

impl ConfigId {
    /// Returns the id of the configuration as 16 bytes in little-endian order.
    pub fn to_bytes(self) -> [u8; 16] {
        self.0.to_le_bytes()
    }

    /// Returns the id of the set that results when `unit` is added to this set, which must not have
    /// it. Takes O(1).
    pub fn with(self, unit: usize) -> ConfigId {
        ConfigId(self.0.wrapping_add(range_id(unit, unit + 1)))
    }

    /// Returns the id of the set that results when `unit` is removed from this set, which must have
    /// it. Takes O(1).
    pub fn without(self, unit: usize) -> ConfigId {
        ConfigId(self.0.wrapping_sub(range_id(unit, unit + 1)))
    }
}

impl fmt::Debug for ConfigId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ConfigId({:032x})", self.0)
    }
}

/// A range of units of the original input that a configuration keeps, with the number and the id of
/// all units that the configuration keeps before it.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Span {
    start: usize,
    end: usize,
    /// Number of units that the configuration keeps before this range.
    before: usize,
    /// Id of the set of units that the configuration keeps before this range.
    id_before: u128,
}

/// A configuration `c ⊆ c✗`: the units of the original input that are kept, as sorted disjoint
/// ranges.
///
/// A clone shares the ranges. A *position* counts the kept units from 0: the unit at position 0 is
/// the first kept unit.
#[derive(Clone, PartialEq, Eq)]
pub struct Config {
    spans: Arc<[Span]>,
    len: usize,
    id: u128,
}

impl Config {
    /// Returns `c✗`, the configuration of the original input: all of its `units` are kept.
    pub fn all(units: usize) -> Config {
        let mut builder = Builder::default();
        builder.push(0..units);
        builder.build()
    }

    /// Returns `∅`, the configuration that keeps no unit.
    pub fn empty() -> Config {
        Builder::default().build()
    }

    /// Builds the configuration that keeps the units in `ranges`; `None` if the ranges overlap or
    /// do not ascend. Empty ranges are ignored.
    pub fn from_ranges(ranges: impl IntoIterator<Item = Range<usize>>) -> Option<Config> {
        let mut builder = Builder::default();
        let mut end = 0;
        for range in ranges {
            if range.start < end || range.end < range.start {
                return None;
            }
            end = range.end;
            builder.push(range);
        }
        Some(builder.build())
    }

    /// Builds the configuration that keeps the units in `ranges`. The caller guarantees that the
    /// ranges ascend and do not overlap.
    pub(super) fn from_ascending(ranges: impl IntoIterator<Item = Range<usize>>) -> Config {
        let mut builder = Builder::default();
        ranges.into_iter().for_each(|range| builder.push(range));
        builder.build()
    }

    /// Returns the number of units of the original input that the configuration keeps.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Returns true if the configuration keeps no unit.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Returns the ranges of kept units, in ascending order. No range is empty, and no two ranges
    /// touch.
    pub fn ranges(&self) -> impl ExactSizeIterator<Item = Range<usize>> + '_ {
        self.spans.iter().map(|span| span.start..span.end)
    }

    /// Returns the number of kept units that precede `unit` in the original input. If `unit` is
    /// kept, this is its position among the kept units. Takes O(log ranges).
    pub fn count_below(&self, unit: usize) -> usize {
        let next = self.spans.partition_point(|span| span.end <= unit);
        self.spans.get(next).map_or(self.len, |span| {
            span.before + unit.saturating_sub(span.start)
        })
    }

    /// Returns the unit, as an index in the original input, at a position among the kept units;
    /// `None` if fewer units are kept. Takes O(log ranges).
    pub fn unit_at(&self, position: usize) -> Option<usize> {
        let span = self.spans.get(self.span_at(position))?;
        Some(span.start + (position - span.before))
    }

    /// Returns an id of the set of kept units: equal configurations have equal ids.
    pub fn id(&self) -> ConfigId {
        ConfigId(self.id)
    }

    /// Returns the id of this configuration [`without`](Config::without) the positions in `cuts`,
    /// computed in O(log ranges) for each cut. The cuts must ascend and must not overlap.
    pub fn id_without(&self, cuts: &[Range<usize>]) -> ConfigId {
        let gone = cuts.iter().fold(0u128, |sum, cut| {
            sum.wrapping_add(self.id_up_to(cut.end))
                .wrapping_sub(self.id_up_to(cut.start))
        });
        ConfigId(self.id.wrapping_sub(gone))
    }

    /// Returns this configuration without the kept units at the positions in `cuts`, which must
    /// ascend and must not overlap. Positions beyond the end are ignored. Takes O(ranges).
    pub fn without(&self, cuts: &[Range<usize>]) -> Config {
        let mut builder = Builder::default();
        let mut kept_from = 0;
        for cut in cuts {
            self.copy(kept_from..cut.start, &mut builder);
            kept_from = cut.end;
        }
        self.copy(kept_from..self.len, &mut builder);
        builder.build()
    }

    /// Writes the items of `original` that the configuration keeps into `text`, which is cleared
    /// first.
    pub fn write_into<T: Clone>(&self, original: &[T], text: &mut Vec<T>) {
        text.clear();
        text.reserve(self.len);
        for span in self.spans.iter() {
            text.extend_from_slice(&original[span.start..span.end]);
        }
    }

    /// Returns the index of the range of kept units that contains the kept unit at `position`; the
    /// number of ranges if fewer units are kept.
    fn span_at(&self, position: usize) -> usize {
        self.spans
            .partition_point(|span| span.before + (span.end - span.start) <= position)
    }

    /// Returns the id (hash) of the configuration that keeps only the first `position` of the units
    /// that this configuration keeps.
    fn id_up_to(&self, position: usize) -> u128 {
        match self.spans.get(self.span_at(position)) {
            Some(span) => span
                .id_before
                .wrapping_add(range_id(span.start, span.start + position - span.before)),
            None => self.id,
        }
    }

    /// Appends to `builder` those kept units of this configuration whose positions, counted among
    /// its kept units, are in `positions`.
    fn copy(&self, positions: Range<usize>, builder: &mut Builder) {
        if positions.is_empty() {
            return;
        }
        for span in &self.spans[self.span_at(positions.start)..] {
            if span.before >= positions.end {
                break;
            }
            let from = span.start + positions.start.saturating_sub(span.before);
            let to = span.end.min(span.start + (positions.end - span.before));
            builder.push(from..to);
        }
    }
}

impl fmt::Debug for Config {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.ranges()).finish()
    }
}

/// A builder of a configuration (set of kept units) from ascending ranges; it joins ranges that
/// touch.
#[derive(Default)]
struct Builder {
    spans: Vec<Span>,
    len: usize,
    id: u128,
}

impl Builder {
    fn push(&mut self, range: Range<usize>) {
        if range.is_empty() {
            return;
        }
        match self.spans.last_mut() {
            Some(last) if last.end == range.start => last.end = range.end,
            _ => self.spans.push(Span {
                start: range.start,
                end: range.end,
                before: self.len,
                id_before: self.id,
            }),
        }
        self.len += range.len();
        self.id = self.id.wrapping_add(range_id(range.start, range.end));
    }

    fn build(self) -> Config {
        Config {
            spans: self.spans.into(),
            len: self.len,
            id: self.id,
        }
    }
}

/// Computes what the units `start..end` add to the id of a configuration, which is the sum over its
/// ranges.
fn range_id(start: usize, end: usize) -> u128 {
    mix(end).wrapping_sub(mix(start))
}

/// Returns a pseudo-random 128-bit value for `position`, always the same, from which the ids of
/// sets of units are computed (by two splitmix64 finalizers with different seeds).
fn mix(position: usize) -> u128 {
    let half = |seed: u64| {
        let mut z = (position as u64)
            .wrapping_add(seed)
            .wrapping_mul(0x9e37_79b9_7f4a_7c15);
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    };
    u128::from(half(0x243f_6a88_85a3_08d3)) << 64 | u128::from(half(0x1319_8a2e_0370_7344))
}

/// Set operations on configurations (sets of kept units). Each takes O(ranges of the operands),
/// unless its description says otherwise.
impl Config {
    /// Returns the union of two configurations: the units that `self` or `other` keeps.
    pub fn union(&self, other: &Config) -> Config {
        Config::union_of([self, other])
    }

    /// Returns the union of any number of configurations; `∅` for none. Takes O(r log r) for `r`
    /// ranges.
    pub fn union_of<'a>(configs: impl IntoIterator<Item = &'a Config>) -> Config {
        let mut ranges: Vec<Range<usize>> = configs.into_iter().flat_map(Config::ranges).collect();
        ranges.sort_by_key(|range| range.start);
        let mut end = 0;
        for range in &mut ranges {
            range.start = range.start.max(end);
            range.end = range.end.max(range.start);
            end = range.end;
        }
        Config::from_ascending(ranges)
    }

    /// Returns the difference `self \ other`: the units that `self` keeps and `other` does not.
    pub fn minus(&self, other: &Config) -> Config {
        let gone: Vec<Range<usize>> = other.ranges().collect();
        let mut left = Vec::new();
        let mut first = 0;
        for range in self.ranges() {
            let behind = |cut: &&Range<usize>| cut.end <= range.start;
            first += gone[first..].iter().take_while(behind).count();
            let mut start = range.start;
            let within = |cut: &&Range<usize>| cut.start < range.end;
            for cut in gone[first..].iter().take_while(within) {
                left.push(start..cut.start.max(start));
                start = cut.end.min(range.end);
            }
            left.push(start..range.end);
        }
        Config::from_ascending(left)
    }

    /// Returns the intersection of two configurations: the units that both keep.
    pub fn intersection(&self, other: &Config) -> Config {
        self.minus(&self.minus(other))
    }

    /// Returns true if `self ⊆ other`: `other` keeps every unit that `self` keeps.
    pub fn is_subset_of(&self, other: &Config) -> bool {
        self.len() <= other.len() && self.minus(other).is_empty()
    }

    /// Returns true if the configuration keeps `unit`, an index in the original input. Takes O(log
    /// ranges).
    pub fn contains(&self, unit: usize) -> bool {
        self.count_below(unit) < self.count_below(unit + 1)
    }

    /// Returns the configuration of those kept units whose positions among all kept units are in
    /// `positions`. Positions beyond the end are ignored.
    pub fn slice(&self, positions: Range<usize>) -> Config {
        self.without(&[0..positions.start, positions.end..self.len()])
    }

    /// Returns part number `index` (from 0) of this configuration, which the function [`part`]
    /// divides into `parts` parts.
    pub fn part(&self, parts: usize, index: usize) -> Config {
        self.slice(part(self.len(), parts, index))
    }
}

/// Divides `len` units into `parts` contiguous parts, and returns part number `index` (from 0) as a
/// range of positions. The sizes of parts differ by at most one, and larger parts come first: 7
/// units in 3 parts give 3, 2 and 2. An `index` beyond the last part gives an empty range.
///
/// ```
/// use ddfuzz_delta::part;
/// assert_eq!([0, 1, 2].map(|index| part(7, 3, index)), [0..3, 3..5, 5..7]);
/// ```
pub fn part(len: usize, parts: usize, index: usize) -> Range<usize> {
    if index >= parts {
        return len..len;
    }
    let (size, larger) = (len / parts, len % parts);
    let start = index * size + index.min(larger);
    start..start + size + usize::from(index < larger)
}
