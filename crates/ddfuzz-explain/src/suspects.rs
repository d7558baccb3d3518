//! Chooses the statements at which to look first, of all that an explanation names: those with the
//! strongest evidence that they are wrong. Pure.

use std::collections::VecDeque;

use crate::averting::with_averting;
use crate::chain::Confidence;
use crate::dwarf::is_library_file;
use crate::failing_facts::CHOOSES_PLACE;
use crate::links::is_in_buffer;
use crate::report::{
    Explanation, FrameRecord, LinkRecord, OriginRecord, OverflowRecord, SuspectRecord, WriterRecord,
};

/// Maximum number of statements in the list of those at which to look first. Statements at which a
/// changed program does not fail are added to the list beyond this number.
pub(crate) const NAMED: usize = 3;
/// Name of the function in which a program begins: it calls the functions that do the work.
pub(crate) const MAIN: &str = "main";
/// Text about the statement that wrote a confirmed variable of the chain.
const CONFIRMED: &str = "made what makes the difference (confirmed)";
/// Name of the signal by which a run ends if the C library aborts it, as after a double `free`.
const ABORTED: &str = "SIGABRT";
/// Text about a call that allocates the heap block past whose end the run writes.
const SHORT: &str = "allocates a block that is too short";
/// Text about a statement that reads the size of the overflowed heap block from memory, in another
/// function than the one that allocates the block.
const CHOSEN: &str = "takes the size of that block from memory";
/// Text about a statement that wrote a value from which the size of the overflowed heap block was
/// computed.
const OF_SIZE: &str = "wrote what the size of that block was made of";
/// Text about a statement that wrote a value (such as a length) on which depends how far the
/// program writes past the end of the heap block.
const EXTENT: &str = "wrote what decides how much is written behind that block";
/// Text about the statement that wrote the value by which the run fails.
const VALUE: &str = "wrote the value by which it fails";
/// Text about a statement that wrote a pointer or an index: by it, the value that made the run fail
/// was read from a wrong place.
const PLACE: &str = "wrote by which pointer or index the value is read by which it fails";
/// Text about a statement that wrote a value from which the failing value was computed.
const OF_VALUE: &str = "wrote what that value was made of";
/// Text about a statement that has computed a number below zero, or one too large for where it is
/// kept.
const OUT_OF_RANGE: &str = "computes a number below zero, or too large for where it is kept";

/// Returns true if the source file `file` is no part of the program under test: a file of a
/// standard library, of a dependency from a Cargo registry, or of the harness.
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
pub(crate) struct Suspects {
    /// The statements at which to look first, in the order in which they are named.
    pub found: Vec<SuspectRecord>,
    /// Statements that are named after all in `found`: those in `main`, and the one that fails.
    last: Vec<SuspectRecord>,
    /// Source file and line of the statement that fails.
    failing: (Option<String>, Option<u64>),
}

/// Returns the innermost of `calls` in the program's own code (they are innermost first) and, if
/// the next one in it is in another function, this one as well; `None` where there is none.
pub(crate) fn own_place(calls: &[FrameRecord]) -> Option<Vec<FrameRecord>> {
    let is_own = |it: &&FrameRecord| {
        it.line.is_some() && it.file.as_ref().is_some_and(|file| !is_foreign(file))
    };
    let mut place: Vec<FrameRecord> = calls.iter().filter(is_own).take(2).cloned().collect();
    // The caller says more only where it is another function.
    if place.len() > 1 && place[0].function == place[1].function {
        place.truncate(1);
    }
    (!place.is_empty()).then_some(place)
}

/// Returns true if `suspect` names the same statement as `place`, with the same caller if both name
/// one.
fn is_same(suspect: &SuspectRecord, place: &[FrameRecord]) -> bool {
    let mut both = suspect.place.iter().zip(place);
    both.all(|(one, other)| (one.line, &one.file) == (other.line, &other.file))
}

impl Suspects {
    /// Adds the innermost statement of `calls` (innermost first) in the program's own code, with
    /// its caller, unless it is among the suspects already. `why` is the text about it.
    pub fn add(&mut self, calls: &[FrameRecord], why: &str) {
        self.add_before(calls, (why, false), |_| false);
    }

    /// Adds a statement like [`add`](Suspects::add), as tested: a changed run has shown that the
    /// failure depends on it. A suspect that was not tested becomes tested, with the text `why`.
    pub fn add_tested(&mut self, calls: &[FrameRecord], why: &str) {
        self.add_before(calls, (why, true), |_| false);
    }

    /// Adds a statement to the suspects as [`add`](Suspects::add) does; one in `main`, or the
    /// failing one itself, after all others, because a wrong value there was mostly made elsewhere.
    fn add_likely(&mut self, calls: &[FrameRecord], why: &str) {
        let failing = self.failing.clone();
        self.add_before(calls, (why, why == CONFIRMED), |it| {
            it.function == MAIN || (&it.file, it.line) == (&failing.0, failing.1)
        });
    }

    /// Returns true if a statement is among the suspects already, with the same caller: a statement
    /// in a function that several others call is one suspect for each caller.
    pub fn has(&self, place: &[FrameRecord]) -> bool {
        let mut all = self.found.iter().chain(&self.last);
        all.any(|it| is_same(it, place))
    }

    fn known(&mut self, place: &[FrameRecord]) -> Option<&mut SuspectRecord> {
        let mut all = self.found.iter_mut().chain(&mut self.last);
        all.find(|it| is_same(it, place))
    }

    fn add_before(
        &mut self,
        calls: &[FrameRecord],
        (why, tested): (&str, bool),
        is_last: impl Fn(&FrameRecord) -> bool,
    ) {
        let Some(place) = own_place(calls) else {
            return;
        };
        if let Some(known) = self.known(&place) {
            // A run has tested it for another reason than it is named for. A confirmed link says less.
            if tested && !known.tested && why != CONFIRMED {
                (known.why, known.tested) = (why.to_owned(), true);
            }
            return;
        }
        let is_last = is_last(&place[0]);
        let why = why.to_owned();
        let suspect = SuspectRecord { place, why, tested };
        match is_last {
            true => self.last.push(suspect),
            false => self.found.push(suspect),
        }
    }

    /// Adds to the suspects the statements that have computed numbers out of range.
    fn add_out_of_range(&mut self, it: &Explanation) {
        let block = it.overflow.iter();
        let of_block = block.flat_map(|block| block.size.iter().chain(&block.extent));
        let made = it.chain.iter().filter_map(|link| link.made_of.as_ref());
        let values = of_block.chain(&it.origin).chain(made).flat_map(all);
        for value in values.filter(|it| it.out_of_range) {
            self.add(&value.written, OUT_OF_RANGE);
        }
    }

    /// Adds to the suspects, for the heap block past whose end the run writes, the statements that
    /// made its size and those that decide how much is written: one of the two is wrong.
    fn add_overflow(&mut self, block: &OverflowRecord) {
        let of_writer = |it: &&OriginRecord| {
            let place = own_place(&it.written);
            place.is_some_and(|place| place[0].function == block.writer.function)
        };
        let extent: Vec<&OriginRecord> = block.extent.iter().flat_map(all).collect();
        let other = extent.iter().find(|it| !of_writer(it)).or(extent.first());
        let Some(size) = &block.size else {
            if let Some(extent) = other {
                self.add_likely(&extent.written, EXTENT);
            }
            self.add_likely(&block.allocated, SHORT);
            return self.add_writer(block);
        };
        // The call computes the size from a value that it reads.
        if size.read.is_some() && !block.passes_size {
            self.add_likely(&block.allocated, SHORT);
        }
        if let Some(read) = block.size_read_by() {
            self.add_likely(std::slice::from_ref(read), CHOSEN);
        }
        self.add_likely(&size.written, "makes the size of a block that is too short");
        if block.is_averted {
            self.add_writer(block);
        }
        if let Some(extent) = other {
            self.add_likely(&extent.written, EXTENT);
        }
        if let Some(next) = size.earlier.iter().find(|it| !it.copies) {
            self.add_likely(&next.written, OF_SIZE);
        }
    }

    /// Adds to the suspects the statement that writes, or reads, behind the heap block.
    fn add_writer(&mut self, block: &OverflowRecord) {
        let writer = std::slice::from_ref(&block.writer);
        let how = if block.reads { "reads" } else { "writes" };
        let why = format!("{how} behind a block");
        match block.is_averted {
            true => self.add_tested(writer, &why),
            false => self.add_likely(writer, &why),
        }
    }

    /// Adds to the suspects the statements that have damaged the heap, have read memory before it
    /// was set, have freed a block that is still used, or have used a freed or moved block.
    fn add_heap(&mut self, it: &Explanation) {
        if let Some(block) = &it.overflow {
            self.add_overflow(block);
        }
        let by = it.switched.iter().filter_map(|it| it.by.as_ref());
        for unset in (it.origin.iter().chain(by).flat_map(all)).filter(|it| it.unset) {
            self.add(&unset.written, "memory from here is read before it is set");
        }
        if !it.moved_early.is_empty() {
            // Without the move the run does not fail.
            self.add_tested(&it.used_late, "uses a block where it was before its move");
        }
        if it.freed_early.is_empty() {
            return;
        }
        self.add_tested(&it.freed_early, "frees what is used later");
        let values = it.origin.iter().flat_map(all);
        for value in values.filter(|it| it.freed) {
            self.add(&value.written, "frees what is read later");
        }
        // What is freed a second time.
        if let Some(value) = it.origin.as_ref().filter(|_| it.crash.ended == ABORTED) {
            self.add_likely(&value.written, of_value(value));
        }
        self.add(&it.used_late, "uses what was freed");
    }

    /// Adds to the suspects the statement that made the failing value, but only if another
    /// statement is known to have chosen the address to which that value was written.
    fn add_value(&mut self, it: &Explanation) {
        let is_chosen = it.observed.iter().any(|odd| odd.why == CHOOSES_PLACE);
        if let Some(value) = it.origin.as_ref().filter(|_| is_chosen) {
            self.add_likely(&value.written, of_value(value));
        }
    }

    /// Adds to the suspects the statements that made the value by which the run failed, and those
    /// that made the confirmed variables of the chain, the last variable first. The value stands in
    /// front of the variables, but behind the last one if it is probably the same in both runs: if
    /// the passing run also executes the statement that wrote it, and no link has that statement.
    fn add_values(&mut self, it: &Explanation) {
        let links = it.chain.iter().rev().filter(|link| carries(link));
        let mut links: VecDeque<&LinkRecord> = links.collect();
        let is_same = |value: &&OriginRecord| value.in_both && !is_in_chain(value, &it.chain);
        let is_last = it.origin.as_ref().filter(is_same).is_some();
        if is_last {
            self.add_last_link(&mut links, &it.chain);
        }
        if let Some(value) = &it.origin {
            self.add_likely(&value.written, of_value(value));
        }
        if !is_last {
            self.add_last_link(&mut links, &it.chain);
        }
        let earlier = it.origin.iter().flat_map(|it| &it.earlier);
        let mut computed = earlier.filter(|it| !it.copies && !it.selects);
        if let Some(value) = computed.next() {
            self.add_likely(&value.written, OF_VALUE);
        }
        for link in links {
            self.add_link(link, &it.chain);
        }
    }

    /// Takes links from the front of `links` and makes their statements suspects, until one of them
    /// adds a suspect that is new, or no link is left. `chain` has all links of the chain.
    fn add_last_link(&mut self, links: &mut VecDeque<&LinkRecord>, chain: &[LinkRecord]) {
        let named = |it: &Suspects| it.found.len() + it.last.len();
        let before = named(self);
        while named(self) == before
            && let Some(link) = links.pop_front()
        {
            self.add_link(link, chain);
        }
    }

    /// Adds the statement that made the confirmed variable of `link` to the suspects. If that only
    /// copies a value, adds the statement that computed the value instead; but not if this one is a
    /// suspect already, or the first of `chain`, which took the value from the input.
    fn add_link(&mut self, link: &LinkRecord, chain: &[LinkRecord]) {
        let made = link.made_of.as_ref().filter(|it| it.copies);
        let made = made.and_then(|it| it.earlier.iter().find(|it| !it.copies));
        let first = chain.iter().find_map(|it| match &it.writer {
            Some(WriterRecord::Statement(place)) => Some(place),
            _ => None,
        });
        let is_first = |it: &&OriginRecord| {
            let place = own_place(&it.written);
            let both = place.as_ref().map(|it| &it[0]).zip(first);
            both.is_some_and(|(one, other)| (one.line, &one.file) == (other.line, &other.file))
        };
        let is_told = |it: &&OriginRecord| self.has(&own_place(&it.written).unwrap_or_default());
        let made = made.filter(|it| !is_first(it) && !is_told(it));
        match (made, &link.writer) {
            (_, Some(WriterRecord::Missed(place))) => {
                let first = link.instead.first().unwrap_or(place);
                self.add_likely(std::slice::from_ref(first), CONFIRMED);
            }
            (Some(made), _) => self.add_likely(&made.written, CONFIRMED),
            (None, Some(WriterRecord::Statement(place))) => {
                let calls = std::iter::once(place).chain(&link.calls);
                self.add_likely(&calls.cloned().collect::<Vec<_>>(), CONFIRMED);
            }
            (None, _) => {}
        }
    }

    /// Moves tested suspects forward: from `last`, the list after `found`, to the end of `found`.
    fn bring_tested_forward(&mut self) {
        let last = std::mem::take(&mut self.last);
        let (tested, last): (Vec<_>, Vec<_>) = last.into_iter().partition(|it| it.tested);
        self.found.extend(tested);
        self.last = last;
    }

    /// Adds to the suspects the statements that wrote the values from which the failing value was
    /// computed, and the values that the conditions `it.switched` compared: with one of these
    /// decided the other way, the run did not fail.
    fn add_earlier(&mut self, it: &Explanation) {
        for value in it.origin.iter().flat_map(|it| &it.earlier) {
            self.add_likely(&value.written, OF_VALUE);
        }
        for value in it.switched.iter().filter_map(|it| it.by.as_ref()) {
            let why = "wrote what a condition compares by which it fails";
            self.add_likely(&value.written, why);
        }
    }
}

/// Returns what reports say of the statement that wrote `value`, a value by which the run fails.
fn of_value(value: &OriginRecord) -> &'static str {
    if value.selects { PLACE } else { VALUE }
}

/// Returns a value's origin, and those of all values from which it was made.
fn all(origin: &OriginRecord) -> impl Iterator<Item = &OriginRecord> {
    std::iter::once(origin).chain(&origin.earlier)
}

/// Returns true if the statement that wrote a value is also the writer of some link's variable.
fn is_in_chain(value: &OriginRecord, chain: &[LinkRecord]) -> bool {
    let Some(place) = own_place(&value.written) else {
        return false;
    };
    chain.iter().any(|link| match &link.writer {
        Some(WriterRecord::Statement(writer) | WriterRecord::Missed(writer)) => {
            (writer.line, &writer.file) == (place[0].line, &place[0].file)
        }
        _ => false,
    })
}

/// Returns true if a link is confirmed, and a statement wrote its variable (no library's buffer).
fn carries(link: &LinkRecord) -> bool {
    let is_written = matches!(
        link.writer,
        Some(WriterRecord::Statement(_) | WriterRecord::Missed(_))
    );
    is_written && link.confidence == Confidence::Confirmed && !is_in_buffer(link)
}

/// Returns the statements of the program at which to look first: at most three that have computed a
/// number out of range, have damaged the heap, wrote the value by which the run failed, or made the
/// confirmed variables of the chain; and with them those at which a change averts the failure.
pub fn suspects(it: &Explanation) -> Vec<SuspectRecord> {
    let mut all = Suspects {
        failing: (it.crash.file.clone(), it.crash.line),
        ..Suspects::default()
    };
    all.add_out_of_range(it);
    let is_place = |odd: &&SuspectRecord| odd.why == CHOOSES_PLACE;
    let (tested, rest): (Vec<&SuspectRecord>, Vec<&SuspectRecord>) =
        (it.observed.iter().filter(|odd| !is_place(odd))).partition(|odd| odd.tested);
    for odd in tested {
        all.add_before(&odd.place, (&odd.why, odd.tested), |_| false);
    }
    all.add_heap(it);
    all.add_value(it);
    // The value stands where it was written.
    for odd in it.observed.iter().filter(is_place) {
        all.add_before(&odd.place, (&odd.why, odd.tested), |_| false);
    }
    all.add_values(it);
    all.bring_tested_forward();
    all.add_earlier(it);
    // The run fails without them as well, as far as is known.
    for odd in rest {
        all.add(&odd.place, &odd.why);
    }
    let mut found = std::mem::take(&mut all.found);
    found.append(&mut all.last);
    found.truncate(NAMED);
    with_averting(found, it)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::CriticalRecord;

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
            in_both: false,
            freed: false,
            operand: 0,
            selects: false,
            earlier,
        }
    }

    fn link(line: u64, confidence: Confidence) -> LinkRecord {
        LinkRecord {
            variable: "x".to_owned(),
            confidence,
            writer: Some(WriterRecord::Statement(own(line))),
            ..LinkRecord::default()
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
        assert_eq!(lines(&it), [Some(10), Some(30), Some(20)]);
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
        assert_eq!(lines(&it), [Some(20), Some(10), Some(15)]);
        let block = OverflowRecord {
            bytes: 3,
            allocated: vec![own(50)],
            size: Some(value(60, vec![odd])),
            passes_size: false,
            extent: None,
            writer: own(70),
            reads: false,
            is_averted: true,
        };
        let it = Explanation {
            overflow: Some(block),
            ..it
        };
        assert_eq!(lines(&it), [Some(20), Some(60), Some(10)]);
    }

    #[test]
    fn of_a_block_its_size_and_its_extent_are_named() {
        let in_writer = OriginRecord {
            written: vec![frame("fill", "main.c", 71)],
            ..value(71, vec![value(80, Vec::new())])
        };
        let block = OverflowRecord {
            bytes: 3,
            allocated: vec![own(50)],
            size: Some(value(60, Vec::new())),
            passes_size: false,
            extent: Some(in_writer),
            writer: frame("fill", "main.c", 70),
            reads: false,
            is_averted: true,
        };
        let it = Explanation {
            overflow: Some(block.clone()),
            ..Explanation::default()
        };
        assert_eq!(lines(&it), [Some(60), Some(80)]);
        let it = Explanation {
            overflow: Some(OverflowRecord {
                size: None,
                ..block
            }),
            ..Explanation::default()
        };
        assert_eq!(lines(&it), [Some(80), Some(50), Some(70)]);
    }

    #[test]
    fn a_call_that_only_passes_the_size_on_is_passed_over() {
        let size = OriginRecord {
            read: Some(own(50)),
            ..value(60, vec![value(65, Vec::new())])
        };
        let block = OverflowRecord {
            bytes: 3,
            allocated: vec![own(50)],
            size: Some(size),
            passes_size: true,
            extent: None,
            writer: own(70),
            reads: false,
            is_averted: true,
        };
        let it = Explanation {
            overflow: Some(block),
            ..Explanation::default()
        };
        assert_eq!(lines(&it), [Some(60), Some(65)]);
    }

    #[test]
    fn what_is_odd_comes_before_values_only_where_a_run_has_tested_it() {
        let odd = SuspectRecord {
            place: vec![own(90)],
            why: "writes to memory that was freed".to_owned(),
            tested: true,
        };
        let mut it = Explanation {
            observed: vec![odd],
            origin: Some(value(10, Vec::new())),
            ..Explanation::default()
        };
        assert_eq!(lines(&it), [Some(90), Some(10)]);
        it.observed[0].tested = false;
        assert_eq!(lines(&it), [Some(10), Some(90)]);
    }

    #[test]
    fn conditions_whose_other_decision_averts_the_failure_come_after_the_first_statement() {
        let condition = |line, reaches| CriticalRecord {
            place: vec![own(line)],
            execution: 1,
            reaches,
            is_like: false,
            decided: 0,
        };
        let mut it = Explanation {
            origin: Some(value(10, vec![value(20, Vec::new())])),
            critical: vec![condition(30, true), condition(40, false)],
            ..Explanation::default()
        };
        assert_eq!(lines(&it), [Some(10), Some(30), Some(20)]);
        let tested = suspects(&it).into_iter().map(|it| it.tested);
        assert_eq!(tested.collect::<Vec<_>>(), [false, true, false]);
        // A statement is named once, and what a run has tested is no suspicion.
        it.critical[0] = condition(20, true);
        it.critical[0].place = it.origin.as_ref().unwrap().earlier[0].written.clone();
        assert_eq!(lines(&it), [Some(10), Some(20)]);
        assert!(suspects(&it)[1].tested);
    }

    #[test]
    fn the_function_that_takes_a_size_from_memory_for_its_caller_is_named() {
        let read = |function| OriginRecord {
            read: Some(frame(function, "main.c", 55)),
            ..value(60, Vec::new())
        };
        let lines_of = |size| {
            let block = OverflowRecord {
                bytes: 3,
                allocated: vec![own(50)],
                size: Some(size),
                passes_size: false,
                extent: None,
                writer: own(70),
                reads: false,
                is_averted: true,
            };
            lines(&Explanation {
                overflow: Some(block),
                ..Explanation::default()
            })
        };
        assert_eq!(lines_of(read("longest")), [Some(50), Some(55), Some(60)]);
        // The function that allocates reads it itself.
        assert_eq!(lines_of(read("f")), [Some(50), Some(60)]);
    }

    #[test]
    fn what_is_freed_and_read_is_named_for_each_caller() {
        let freed = |caller: u64| vec![own(10), frame("caller", "main.c", caller)];
        let value = OriginRecord {
            written: freed(30),
            freed: true,
            ..value(10, Vec::new())
        };
        let it = Explanation {
            freed_early: freed(20),
            used_late: vec![own(40)],
            origin: Some(value),
            ..Explanation::default()
        };
        let callers: Vec<Option<u64>> = suspects(&it)
            .iter()
            .map(|it| it.place.get(1).and_then(|it| it.line))
            .collect();
        assert_eq!(callers, [Some(20), Some(30), None]);
    }

    #[test]
    fn main_and_the_statement_that_fails_come_last() {
        let mut it = Explanation {
            origin: Some(value(10, vec![value(20, Vec::new())])),
            chain: vec![link(30, Confidence::Confirmed)],
            ..Explanation::default()
        };
        it.crash.file = Some("main.c".to_owned());
        it.crash.line = Some(10);
        assert_eq!(lines(&it), [Some(30), Some(20), Some(10)]);
        let in_main = frame("main", "main.c", 30);
        it.chain[0].writer = Some(WriterRecord::Statement(in_main));
        assert_eq!(lines(&it), [Some(20), Some(30), Some(10)]);
    }

    #[test]
    fn what_both_runs_write_alike_comes_after_what_makes_the_difference() {
        let mut it = Explanation {
            origin: Some(value(10, vec![value(20, Vec::new())])),
            chain: vec![
                link(30, Confidence::Confirmed),
                link(40, Confidence::Confirmed),
            ],
            ..Explanation::default()
        };
        assert_eq!(lines(&it), [Some(10), Some(40), Some(20)]);
        it.origin.as_mut().unwrap().in_both = true;
        assert_eq!(lines(&it), [Some(40), Some(10), Some(20)]);
        // The value differs: it is in the chain, confirmed or not.
        it.chain.push(link(10, Confidence::NotConfirmed));
        assert_eq!(lines(&it), [Some(10), Some(40), Some(20)]);
        // A last link that says no more than the value gives way to the one before it.
        it.chain[2].confidence = Confidence::Confirmed;
        assert_eq!(lines(&it), [Some(10), Some(40), Some(20)]);
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
        it.chain.insert(0, link(5, Confidence::Confirmed));
        assert_eq!(lines(&it), [Some(20), Some(5)]);
        // The statement that made the value is named for another reason.
        it.origin = Some(value(20, Vec::new()));
        assert_eq!(lines(&it), [Some(20), Some(30), Some(5)]);
        it.origin = None;
        // What was copied is what was read.
        it.chain.insert(0, link(20, Confidence::Confirmed));
        assert_eq!(lines(&it), [Some(30), Some(5), Some(20)]);
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
