//! Names of functions with their ranges of addresses, searchable by address.

use std::sync::{Arc, OnceLock};

use crate::runtime_modules::is_runtime_symbol;

/// The name of a function, with its range of addresses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct NamedRange {
    /// First address of the named function.
    pub start: u64,
    /// First address after the named function; equal to `start` where its size is unknown.
    pub end: u64,
    /// Name of the function to which the range of addresses belongs.
    pub name: Arc<str>,
}

/// A table of function names with their ranges of addresses, searchable by address.
///
/// Few names are ever looked up. So the table is sorted at the first look-up, and whether a mangled
/// name belongs into the table is decided only when a look-up comes to it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Names {
    /// All names of functions in the table, one after the other.
    texts: String,
    places: Vec<NamedFunction>,
    order: OnceLock<SearchOrder>,
}

/// One function in the table of names.
#[derive(Clone, Debug)]
struct NamedFunction {
    start: u64,
    end: u64,
    /// Where the function's name begins in `texts` of the table, and its length, both in bytes.
    name: (usize, usize),
    /// Whether the function belongs into the table; empty until a look-up decides it.
    counts: OnceLock<bool>,
}

/// The functions of a table of names, in the order in which they are searched.
#[derive(Clone, Debug)]
struct SearchOrder {
    /// Indices into the table's `places`, ascending by start address. Of several functions with one
    /// start, that with the plainest name comes first: fewest leading underscores, then shortest,
    /// then first in the alphabet.
    sorted: Vec<usize>,
    /// For each item of `sorted`, the greatest end address of its function and of all functions
    /// before it.
    reach: Vec<u64>,
}

impl Names {
    /// Adds a function that certainly belongs into the table; `size` is in bytes.
    pub(crate) fn add(&mut self, start: u64, size: u64, name: &str) {
        self.push(start, size, name, OnceLock::from(true));
    }

    /// Adds a function that belongs into the table only if its name is that of a runtime function
    /// (C library, sanitizer …). For a mangled name, this is decided at a later look-up.
    pub(crate) fn add_if_runtime(&mut self, start: u64, size: u64, name: &str) {
        if !name.starts_with("_ZN") && !name.starts_with("_R") {
            if is_runtime_symbol(name) {
                self.add(start, size, name);
            }
            return;
        }
        self.push(start, size, name, OnceLock::new());
    }

    fn push(&mut self, start: u64, size: u64, name: &str, counts: OnceLock<bool>) {
        let at = self.texts.len();
        self.texts.push_str(name);
        self.places.push(NamedFunction {
            start,
            end: start.saturating_add(size),
            name: (at, name.len()),
            counts,
        });
        self.order = OnceLock::new();
    }

    fn text(&self, place: &NamedFunction) -> &str {
        let (at, length) = place.name;
        &self.texts[at..at + length]
    }

    fn counts(&self, place: &NamedFunction) -> bool {
        let decide = || is_runtime_symbol(self.text(place));
        *place.counts.get_or_init(decide)
    }

    fn order(&self) -> &SearchOrder {
        self.order.get_or_init(|| {
            let plainness = |place: &NamedFunction| {
                let name = self.text(place);
                let underscores = name.len() - name.trim_start_matches('_').len();
                (underscores, name.len())
            };
            let mut sorted: Vec<usize> = (0..self.places.len()).collect();
            sorted.sort_by(|a, b| {
                let (a, b) = (&self.places[*a], &self.places[*b]);
                let starts = a.start.cmp(&b.start);
                starts.then_with(|| (plainness(a), self.text(a)).cmp(&(plainness(b), self.text(b))))
            });
            let ends = sorted.iter().map(|at| self.places[*at].end);
            let reach = ends.scan(0, |most, end| {
                *most = end.max(*most);
                Some(*most)
            });
            SearchOrder {
                reach: reach.collect(),
                sorted,
            }
        })
    }

    /// Returns the function that starts nearest to `address`, at or below it, with its name and
    /// address range, even if it ends before `address`; `None` if all functions start above.
    pub(crate) fn nearest(&self, address: u64) -> Option<NamedRange> {
        let (end, place) = self.find(address, |_| true)?;
        Some(NamedRange {
            start: place.start,
            end,
            name: self.text(place).into(),
        })
    }

    /// Returns the name of the function whose address range contains `address`; `None` where there
    /// is none.
    pub(crate) fn containing(&self, address: u64) -> Option<Arc<str>> {
        let (_, place) = self.holder(address)?;
        Some(self.text(place).into())
    }

    /// Checks whether the address range of a function contains `address`.
    pub(crate) fn contains(&self, address: u64) -> bool {
        self.holder(address).is_some()
    }

    fn holder(&self, address: u64) -> Option<(u64, &NamedFunction)> {
        // Where all functions end before the address, those that start below need no decision.
        let found = self.find(address, |reach| address < reach);
        found.filter(|(end, _)| address < *end)
    }

    /// Returns the function that starts nearest to `address`, at or below it, with its end. Of
    /// several functions with this start, returns the one with the plainest name, and the greatest
    /// of their ends. The search stops, and `None` is returned, at a function for which `goes_on`
    /// returns false, given the greatest end of this function and all before it.
    fn find(&self, address: u64, goes_on: impl Fn(u64) -> bool) -> Option<(u64, &NamedFunction)> {
        let order = self.order();
        let place = |at: usize| &self.places[order.sorted[at]];
        let mut behind = (order.sorted).partition_point(|at| self.places[*at].start <= address);
        while behind > 0 && goes_on(order.reach[behind - 1]) {
            let start = place(behind - 1).start;
            let mut first = behind - 1;
            while first > 0 && place(first - 1).start == start {
                first -= 1;
            }
            let mut counted = (first..behind).map(place).filter(|it| self.counts(it));
            if let Some(plainest) = counted.next() {
                let end = counted.map(|it| it.end).fold(plainest.end, u64::max);
                return Some((end, plainest));
            }
            behind = first;
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns a table of the runtime functions among `functions`, in which it is decided at once
    /// whether each name belongs into the table.
    fn decided(functions: &[(u64, u64, &str)]) -> Names {
        let mut names = Names::default();
        for (start, size, name) in functions {
            if is_runtime_symbol(name) {
                names.add(*start, *size, name);
            }
        }
        names
    }

    #[test]
    fn a_name_counts_as_late_as_it_is_asked_for_as_it_would_at_once() {
        let core = "_ZN4core6option13unwrap_failed17h0123456789abcdefE";
        let user = "_ZN4mine4core17h0123456789abcdefE";
        let functions = [
            (0x100, 0x40, user),
            (0x110, 8, core),
            (0x200, 0x10, core),
            (0x200, 0x20, user),
            (0x200, 0x30, "abort"),
            (0x300, 0, "raise"),
            (0x400, 0x100, "__asan_report_load1"),
            (0x410, 4, user),
            (0x480, 8, "mine"),
            (0x600, 0x10, "_ZN6fuzzer6Fuzzer3RunEv"),
        ];
        let mut late = Names::default();
        for (start, size, name) in functions.iter().rev() {
            late.add_if_runtime(*start, *size, name);
        }
        let at_once = decided(&functions);
        for address in 0..0x700 {
            let found = late.containing(address);
            assert_eq!(found, at_once.containing(address), "{address:#x}");
            assert_eq!(late.contains(address), found.is_some());
        }
        assert_eq!(late.containing(0x118), None);
        assert_eq!(late.containing(0x112).as_deref(), Some(core));
        assert_eq!(late.containing(0x22f).as_deref(), Some("abort"));
        assert!(!late.contains(0x300) && late.contains(0x412) && late.contains(0x490));
    }

    #[test]
    fn of_several_names_the_plainest_is_told_with_the_greatest_end() {
        let mut names = Names::default();
        assert_eq!(names.nearest(5), None);
        for (size, name) in [(4, "__free"), (9, "cfree"), (2, "free")] {
            names.add(0x10, size, name);
        }
        let found = names.nearest(0x100).unwrap();
        assert_eq!((found.start, found.end, &*found.name), (0x10, 0x19, "free"));
        assert_eq!(names.nearest(0xf), None);
        names.add(0x20, 0, "last");
        assert_eq!(&*names.nearest(0x100).unwrap().name, "last");
        assert_eq!(names.containing(0x18).as_deref(), Some("free"));
    }
}
