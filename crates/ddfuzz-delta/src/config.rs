//! Configurations: sets of kept units, their set operations, and their division into parts.

use std::{fmt, ops::Range, sync::Arc};

/// Names a set of kept units, so that a configuration met before is recognised in O(1).
///
/// Each unit has a fixed pseudo-random 128-bit value and a set is named by their sum. The value of
/// unit `i` is `mix(i + 1) − mix(i)`, so a whole range costs two mixes, however long it is, and
/// equal sets have equal names however they are cut into ranges. Two different sets of a search
/// share a name with a probability of about 2⁻¹²⁸.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct ConfigId(u128);

impl ConfigId {
    /// The name as bytes.
    pub fn to_bytes(self) -> [u8; 16] {
        self.0.to_le_bytes()
    }
}

impl fmt::Debug for ConfigId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ConfigId({:032x})", self.0)
    }
}

/// A kept range of the original, with what stands before it.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Span {
    start: usize,
    end: usize,
    /// Kept units before this range.
    before: usize,
    /// Name of the kept units before this range.
    id_before: u128,
}

/// A configuration `c ⊆ c✗`: the kept units, as sorted disjoint ranges of the original.
///
/// Cloning shares the ranges. Positions in a configuration count its kept units from 0.
#[derive(Clone, PartialEq, Eq)]
pub struct Config {
    spans: Arc<[Span]>,
    len: usize,
    id: u128,
}

impl Config {
    /// `c✗`: all `units` kept.
    pub fn all(units: usize) -> Config {
        let mut builder = Builder::default();
        builder.push(0..units);
        builder.build()
    }

    /// `∅`: nothing kept.
    pub fn empty() -> Config {
        Builder::default().build()
    }

    /// The configuration that keeps these ranges of the original; `None` unless they ascend
    /// without overlap. Empty ranges are left out.
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

    /// The configuration that keeps these ranges, which ascend without overlap.
    pub(super) fn from_ascending(ranges: impl IntoIterator<Item = Range<usize>>) -> Config {
        let mut builder = Builder::default();
        ranges.into_iter().for_each(|range| builder.push(range));
        builder.build()
    }

    /// Number of kept units.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether nothing is kept.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The kept ranges of the original, ascending, none empty, no two touching.
    pub fn ranges(&self) -> impl ExactSizeIterator<Item = Range<usize>> + '_ {
        self.spans.iter().map(|span| span.start..span.end)
    }

    /// Number of kept units among the first `unit` units of the original: where `unit` is kept,
    /// its position. Takes O(log ranges).
    pub fn count_below(&self, unit: usize) -> usize {
        let next = self.spans.partition_point(|span| span.end <= unit);
        self.spans.get(next).map_or(self.len, |span| {
            span.before + unit.saturating_sub(span.start)
        })
    }

    /// The unit of the original at a position; `None` behind the last. Takes O(log ranges).
    pub fn unit_at(&self, position: usize) -> Option<usize> {
        let span = self.spans.get(self.span_at(position))?;
        Some(span.start + (position - span.before))
    }

    /// The name of this set of units.
    pub fn id(&self) -> ConfigId {
        ConfigId(self.id)
    }

    /// The name of this configuration without the ranges `cuts` of its positions, which ascend
    /// without overlap. Takes O(log ranges) a cut.
    pub fn id_without(&self, cuts: &[Range<usize>]) -> ConfigId {
        let gone = cuts.iter().fold(0u128, |sum, cut| {
            sum.wrapping_add(self.id_up_to(cut.end))
                .wrapping_sub(self.id_up_to(cut.start))
        });
        ConfigId(self.id.wrapping_sub(gone))
    }

    /// This configuration without the ranges `cuts` of its positions, which ascend without
    /// overlap; what lies beyond the last position is ignored. Takes O(ranges).
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

    /// Writes the kept units of `original` into `text`, which is cleared first.
    pub fn write_into<T: Clone>(&self, original: &[T], text: &mut Vec<T>) {
        text.clear();
        text.reserve(self.len);
        for span in self.spans.iter() {
            text.extend_from_slice(&original[span.start..span.end]);
        }
    }

    /// Index of the range that holds `position`; the number of ranges where none does.
    fn span_at(&self, position: usize) -> usize {
        self.spans
            .partition_point(|span| span.before + (span.end - span.start) <= position)
    }

    /// Name of the first `position` kept units.
    fn id_up_to(&self, position: usize) -> u128 {
        match self.spans.get(self.span_at(position)) {
            Some(span) => span
                .id_before
                .wrapping_add(range_id(span.start, span.start + position - span.before)),
            None => self.id,
        }
    }

    /// Hands the units at these positions to `builder`.
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

/// Collects ascending ranges, joining those that touch.
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

/// Name of the units `start..end`.
fn range_id(start: usize, end: usize) -> u128 {
    mix(end).wrapping_sub(mix(start))
}

/// Two independent splitmix64 finalizers over one position.
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

/// Each operation takes O(ranges) of its operands, unless it says otherwise.
impl Config {
    /// `self ∪ other`.
    pub fn union(&self, other: &Config) -> Config {
        Config::union_of([self, other])
    }

    /// The union of any number of configurations, `∅` of none. Takes O(r log r) for `r` ranges.
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

    /// `self \ other`.
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

    /// `self ∩ other`.
    pub fn intersection(&self, other: &Config) -> Config {
        self.minus(&self.minus(other))
    }

    /// Whether `self ⊆ other`.
    pub fn is_subset_of(&self, other: &Config) -> bool {
        self.len() <= other.len() && self.minus(other).is_empty()
    }

    /// Whether this unit of the original is kept. Takes O(log ranges).
    pub fn contains(&self, unit: usize) -> bool {
        self.count_below(unit) < self.count_below(unit + 1)
    }

    /// The kept units at these positions, which count kept units from 0; what lies beyond the
    /// last position is ignored.
    pub fn slice(&self, positions: Range<usize>) -> Config {
        self.without(&[0..positions.start, positions.end..self.len()])
    }

    /// Part number `index` (from 0) of this configuration split into `parts`, as [`part`] cuts.
    pub fn part(&self, parts: usize, index: usize) -> Config {
        self.slice(part(self.len(), parts, index))
    }
}

/// Part number `index` (from 0) of `len` kept units cut into `parts` contiguous parts, as a range
/// of positions among the kept units. Sizes differ by at most one, the larger parts come first:
/// 7 units in 3 parts are 3, 2 and 2. An `index` beyond the last part gives an empty range.
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
