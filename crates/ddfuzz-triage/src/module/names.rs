//! Names by address, for the few lookups that keys need.

use std::sync::Arc;

/// A named range of addresses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct NamedRange {
    /// First address.
    pub start: u64,
    /// First address behind it; `start` where the size is not known.
    pub end: u64,
    /// The name.
    pub name: Arc<str>,
}

/// NamedRange ranges, searchable by address.
#[derive(Clone, Debug, Default)]
pub(crate) struct Names {
    /// Sorted by start; one entry a start.
    sorted: Vec<NamedRange>,
}

impl Names {
    /// Sorts the names. Of several for one address the plainest is kept (fewest leading
    /// underscores, then shortest, then first), so that the answer does not depend on their order.
    pub(crate) fn new(mut names: Vec<NamedRange>) -> Names {
        let plainness = |name: &str| {
            let underscores = name.len() - name.trim_start_matches('_').len();
            (underscores, name.len())
        };
        names.sort_by(|a, b| {
            (a.start, plainness(&a.name), &a.name).cmp(&(b.start, plainness(&b.name), &b.name))
        });
        names.dedup_by(|later, kept| {
            let same = later.start == kept.start;
            if same {
                kept.end = kept.end.max(later.end);
            }
            same
        });
        Names { sorted: names }
    }

    /// The nearest name at or below `address`.
    pub(crate) fn nearest(&self, address: u64) -> Option<&NamedRange> {
        let behind = self.sorted.partition_point(|named| named.start <= address);
        self.sorted.get(behind.checked_sub(1)?)
    }

    /// The name whose range holds `address`.
    pub(crate) fn containing(&self, address: u64) -> Option<&NamedRange> {
        self.nearest(address).filter(|named| address < named.end)
    }
}
