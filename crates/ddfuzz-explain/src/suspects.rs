//! The statements at which to look first: of all that an explanation names, the one or two for which most
//! speaks. Pure.

use crate::chain::Confidence;
use crate::dwarf::is_library_file;
use crate::links::is_in_buffer;
use crate::report::{
    Explanation, FrameRecord, LinkRecord, OriginRecord, SuspectRecord, WriterRecord,
};

/// Largest number of statements that are named.
const NAMED: usize = 2;
/// What is said of the statement that wrote a confirmed variable of the chain.
const CONFIRMED: &str = "made what makes the difference (confirmed)";
/// What is said of a call that allocates a block behind which the run writes.
const SHORT: &str = "allocates a block that is too short";
/// What is said of a statement that wrote what the size of such a block was made of.
const OF_SIZE: &str = "wrote what the size of that block was made of";

/// Returns true if a source file belongs to no part of the program under test: to a standard library, to a
/// dependency, or to the harness.
fn is_foreign(file: &str) -> bool {
    let parts = [
        "/.cargo/registry/",
        "/ddfuzz-target/src/",
        "/ddfuzz-exec/runtime/",
    ];
    is_library_file(file) || parts.iter().any(|part| file.contains(part))
}

/// The statements at which to look first, the best one first.
#[derive(Default)]
struct Suspects(Vec<SuspectRecord>);

impl Suspects {
    /// Adds a statement with the calls that led to it, innermost first, unless it is known already, or too
    /// many are. Frames that are not of the program itself are left out.
    fn add(&mut self, calls: &[FrameRecord], why: &str) {
        let is_own = |it: &&FrameRecord| {
            it.line.is_some() && it.file.as_ref().is_some_and(|file| !is_foreign(file))
        };
        let mut place: Vec<FrameRecord> = calls.iter().filter(is_own).cloned().collect();
        // The caller says more only where it is another function.
        let count = match place.get(1) {
            Some(caller) if caller.function != place[0].function => 2,
            _ => 1,
        };
        place.truncate(count);
        let Some(first) = place.first() else {
            return;
        };
        let is_known =
            |it: &SuspectRecord| it.place[0].line == first.line && it.place[0].file == first.file;
        if self.0.len() < NAMED && !self.0.iter().any(is_known) {
            self.0.push(SuspectRecord {
                place,
                why: why.to_owned(),
            });
        }
    }

    /// Adds what has damaged the heap, or uses memory that is not the program's.
    fn add_heap(&mut self, it: &Explanation) {
        if let Some(block) = &it.overflow {
            let of_size: Vec<&OriginRecord> = block.size.iter().flat_map(all).collect();
            self.add_out_of_range(&of_size);
            match block.size.as_ref() {
                Some(size) => {
                    // The call computes the size from a value that it reads.
                    if size.read.is_some() {
                        self.add(&block.allocated, SHORT);
                    }
                    self.add(&size.written, "makes the size of a block that is too short");
                    let next = of_size.iter().find(|it| !it.copies && **it != size);
                    next.into_iter()
                        .for_each(|it| self.add(&it.written, OF_SIZE));
                }
                None => {
                    let writer = std::slice::from_ref(&block.writer);
                    self.add(writer, "writes behind a block");
                    self.add(&block.allocated, SHORT);
                }
            }
        }
        let by = it.switched.iter().filter_map(|it| it.by.as_ref());
        for unset in (it.origin.iter().chain(by).flat_map(all)).filter(|it| it.unset) {
            self.add(&unset.written, "memory from here is read before it is set");
        }
        if !it.moved_early.is_empty() {
            self.add(&it.used_late, "uses a block where it was before its move");
        }
        self.add(&it.freed_early, "frees what is used later");
        if !it.freed_early.is_empty() {
            self.add(&it.used_late, "uses what was freed");
        }
    }

    /// Adds those of some statements that have computed numbers out of range.
    fn add_out_of_range(&mut self, values: &[&OriginRecord]) {
        for value in values.iter().filter(|it| it.out_of_range) {
            self.add(
                &value.written,
                "computes a number below zero, or too large for where it is kept",
            );
        }
    }

    /// Adds what made the value by which the run has failed.
    fn add_values(&mut self, it: &Explanation) {
        let values: Vec<&OriginRecord> = it.origin.iter().flat_map(all).collect();
        self.add_out_of_range(&values);
        let made = it.chain.iter().filter_map(|link| link.made_of.as_ref());
        self.add_out_of_range(&made.flat_map(all).collect::<Vec<_>>());
        if let Some(value) = values.first() {
            self.add(&value.written, "wrote the value by which it fails");
        }
    }

    /// Adds what made the variables of the chain that are confirmed, the last one first.
    fn add_links(&mut self, it: &Explanation) {
        for link in it.chain.iter().rev().filter(|link| carries(link)) {
            let made = link.made_of.as_ref().filter(|it| it.copies);
            let made = made.and_then(|it| it.earlier.iter().find(|it| !it.copies));
            match (made, &link.writer) {
                (_, Some(WriterRecord::Missed(place))) => {
                    let first = link.instead.first().unwrap_or(place);
                    self.add(std::slice::from_ref(first), CONFIRMED);
                }
                (Some(made), _) => self.add(&made.written, CONFIRMED),
                (None, Some(WriterRecord::Statement(place))) => {
                    let calls = std::iter::once(place).chain(&link.calls);
                    self.add(&calls.cloned().collect::<Vec<_>>(), CONFIRMED);
                }
                (None, _) => {}
            }
        }
    }

    /// Adds what made the values of which others were made, and those by which conditions decide.
    fn add_earlier(&mut self, it: &Explanation) {
        for value in it.origin.iter().flat_map(|it| &it.earlier) {
            self.add(&value.written, "wrote what that value was made of");
        }
        for value in it.switched.iter().filter_map(|it| it.by.as_ref()) {
            self.add(
                &value.written,
                "wrote what a condition compares by which it fails",
            );
        }
    }
}

/// A value and all of which it was made.
fn all(origin: &OriginRecord) -> impl Iterator<Item = &OriginRecord> {
    std::iter::once(origin).chain(&origin.earlier)
}

/// Returns true if a link is confirmed, and a statement of the program wrote its variable.
fn carries(link: &LinkRecord) -> bool {
    let is_written = matches!(
        link.writer,
        Some(WriterRecord::Statement(_) | WriterRecord::Missed(_))
    );
    is_written && link.confidence == Confidence::Confirmed && !is_in_buffer(link)
}

/// Returns the statements of the program at which to look first, two at most: those that have damaged the
/// heap, have computed a number out of range, wrote the value by which the run failed, or made the
/// confirmed variables of the chain.
pub fn suspects(it: &Explanation) -> Vec<SuspectRecord> {
    let mut found = Suspects::default();
    found.add_heap(it);
    found.add_values(it);
    found.add_links(it);
    found.add_earlier(it);
    found.0
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::{OverflowRecord, PointRecord};

    fn frame(function: &str, file: &str, line: u64) -> FrameRecord {
        FrameRecord {
            function: function.to_owned(),
            file: Some(file.to_owned()),
            line: Some(line),
        }
    }

    fn own(line: u64) -> FrameRecord {
        frame("f", "main.c", line)
    }

    fn value(line: u64, earlier: Vec<OriginRecord>) -> OriginRecord {
        OriginRecord {
            written: vec![own(line), frame("main", "main.c", line + 1000)],
            read: None,
            unset: false,
            copies: false,
            out_of_range: false,
            earlier,
        }
    }

    fn link(line: u64, confidence: Confidence) -> LinkRecord {
        LinkRecord {
            variable: "x".to_owned(),
            type_name: "int".to_owned(),
            function: None,
            file: None,
            line: None,
            failing: "1".to_owned(),
            passing: "2".to_owned(),
            confidence,
            writer: Some(WriterRecord::Statement(own(line))),
            calls: Vec::new(),
            made_of: None,
            returned: None,
            selected: None,
            parted: None,
            decided: None,
            kept: None,
            instead: Vec::new(),
            point: PointRecord {
                function: None,
                file: None,
                line: None,
                nth: 1,
                address: 0,
            },
        }
    }

    fn lines(it: &Explanation) -> Vec<Option<u64>> {
        suspects(it).iter().map(|it| it.place[0].line).collect()
    }

    #[test]
    fn the_value_comes_before_the_chain_and_only_confirmed_links_are_named() {
        let mut it = Explanation {
            origin: Some(value(10, vec![value(20, Vec::new())])),
            chain: vec![
                link(30, Confidence::Confirmed),
                link(40, Confidence::OneWayOnly),
            ],
            ..Explanation::default()
        };
        assert_eq!(lines(&it), [Some(10), Some(30)]);
        assert_eq!(suspects(&it)[0].place[1].function, "main");
        it.chain[0].confidence = Confidence::NotConfirmed;
        assert_eq!(lines(&it), [Some(10), Some(20)]);
    }

    #[test]
    fn numbers_out_of_range_come_first() {
        let mut odd = value(20, Vec::new());
        odd.out_of_range = true;
        let it = Explanation {
            origin: Some(value(10, vec![value(15, Vec::new()), odd.clone()])),
            ..Explanation::default()
        };
        assert_eq!(lines(&it), [Some(20), Some(10)]);
        let block = OverflowRecord {
            bytes: 3,
            allocated: vec![own(50)],
            size: Some(value(60, vec![odd])),
            writer: own(70),
            is_averted: true,
        };
        let it = Explanation {
            overflow: Some(block),
            ..it
        };
        assert_eq!(lines(&it), [Some(20), Some(60)]);
    }

    #[test]
    fn copies_are_followed_to_what_was_copied() {
        let mut copied = value(30, vec![value(20, Vec::new())]);
        copied.copies = true;
        let mut it = Explanation {
            chain: vec![link(30, Confidence::Confirmed)],
            ..Explanation::default()
        };
        it.chain[0].made_of = Some(copied);
        assert_eq!(lines(&it), [Some(20)]);
    }

    #[test]
    fn nothing_but_the_program_itself_is_named() {
        let foreign = [
            "/usr/include/c++/14/bits/stl_list.h",
            "/rustc/0123/library/core/src/option.rs",
            "/home/me/.cargo/registry/src/index/regex-1.0.0/src/lib.rs",
            "/home/me/ddfuzz/crates/ddfuzz-target/src/lib.rs",
        ];
        for file in foreign {
            let mut it = Explanation {
                origin: Some(value(10, Vec::new())),
                ..Explanation::default()
            };
            it.origin.as_mut().unwrap().written = vec![frame("g", file, 1), own(7)];
            assert_eq!(lines(&it), [Some(7)], "{file}");
            it.origin.as_mut().unwrap().written.truncate(1);
            assert_eq!(lines(&it), [], "{file}");
        }
    }
}
