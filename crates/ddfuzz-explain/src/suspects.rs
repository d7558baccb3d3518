//! Chooses the statements at which to look first among all that an explanation names: those with
//! the strongest evidence that they are wrong. Pure.

use std::collections::VecDeque;

use ddfuzz_triage::short_function;

use crate::averting::with_averting;
use crate::chain::Confidence;
use crate::dwarf::is_library_file;
use crate::failing_facts::CHOOSES_PLACE;
use crate::links::is_in_buffer;
use crate::report::{
    AccessRecord, Explanation, FrameRecord, LinkRecord, OriginRecord, OverflowRecord,
    OverreadRecord, OverrunRecord, RecursionRecord, SuspectRecord, UnsetRecord, WriterRecord,
};

/// Maximum number of statements in the list of those at which to look first. Statements at which a
/// changed program does not fail are added to the list beyond this number.
pub(crate) const NAMED: usize = 3;
/// Name of the function in which a program begins, and which mostly calls others that do the work.
pub(crate) const MAIN: &str = "main";
/// Number of statements of a chain in `main` from which `main` counts as doing the work itself.
const WORKING: usize = 3;
/// Text about the statement that wrote a confirmed variable of the chain.
const CONFIRMED: &str = "made what makes the difference (confirmed)";
/// Text about the statement that wrote a variable of the chain of which one of two experiments has
/// shown that it is a cause: the passing run fails with its failing value, but the failing run does
/// not pass with its passing value.
const ONE_WAY: &str = "made what makes the passing run fail (one way only)";
/// Text about the statement that wrote a variable of the chain that is not confirmed.
const NOT_CONFIRMED: &str = "wrote what differs between the runs (not confirmed)";
/// Text about a statement that wrote no variable of the chain, but the value that was copied to a
/// confirmed one.
const COPIED: &str = "wrote what a confirmed variable was copied from";
/// Text about a statement that the failing run executes where the passing run writes a confirmed
/// variable.
const IN_PLACE: &str = "executed in place of the write that makes the difference (confirmed)";
/// Name of the signal with which a run ends if the C library aborts it, as after a double `free`.
const ABORTED: &str = "SIGABRT";
/// Text about a call that allocates the heap block past whose end the run writes.
const SHORT: &str = "allocates a block that is too short";
/// Text about a statement outside the allocating function that reads the heap block's size.
const CHOSEN: &str = "takes the size of the overrun block from memory";
/// Text about a statement that wrote a value from which the size of the heap block was computed.
const OF_SIZE: &str = "wrote what the size of the overrun block was made of";
/// Text about a statement that wrote a value which decides how far the heap block is overrun.
const EXTENT: &str = "wrote what decides how much is written behind the overrun block";
/// Text about the statement that wrote the value with which the run fails.
const VALUE: &str = "wrote the value by which it fails";
/// Text about a statement that copied, from other memory, the value with which the run fails.
const COPIES: &str = "copied the value by which it fails";
/// Text about a statement that wrote the pointer or index with which the failing value was read.
const PLACE: &str = "wrote the pointer or index by which the failing value is read";
/// Text about a statement that wrote a value from which the failing value was computed.
const OF_VALUE: &str = "wrote what the value by which it fails was made of";
/// Text about a statement that computed a number that is below zero, or too large for its place.
const OUT_OF_RANGE: &str = "computes a number below zero, or too large for where it is kept";

/// Text about the statement that wrote the link by which a recursion comes to the same data again.
const CLOSES: &str = "wrote the link that closes the cycle";
/// Text about a recursive call that ends only where the stack is large enough.
const UNLIMITED: &str = "calls itself to any depth: with a larger stack the run does not fail";
/// Text about a condition by which a recursion goes on.
const GOES_ON: &str = "decided otherwise in one of the calls, the run does not fail";

/// Returns true if the source file `file` is not part of the program under test: a file of a
/// standard library, of a dependency from a Cargo registry, or of the harness.
fn is_foreign(file: &str) -> bool {
    let parts = [
        "/.cargo/registry/",
        "/ddfuzz-target/src/",
        "/ddfuzz-exec/runtime/",
    ];
    is_library_file(file) || parts.iter().any(|part| file.contains(part))
}

/// The statements at which to look first, the most suspect first.
#[derive(Default)]
pub(crate) struct Suspects {
    /// The statements at which to look first, in the order in which they are named.
    pub found: Vec<SuspectRecord>,
    /// Statements that are named after all in `found`: those in `main`, and the one that fails.
    last: Vec<SuspectRecord>,
    /// Source file and line of the statement that fails.
    failing: (Option<String>, Option<u64>),
    /// Whether `main` only calls the functions that do the work ([`is_main_a_caller`]).
    is_main_a_caller: bool,
    /// The heap block past whose end the run writes, with the functions that return it when it is
    /// new: what they do, they do for all blocks.
    block: Option<OverflowRecord>,
}

/// Returns the innermost of `calls` in the program's own code (`calls` are innermost first) and, if
/// the next own one is in another function, this one as well; `None` if there is none.
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

/// Returns true if `suspect` and `place` name the same statement and, if both do, the same caller.
fn is_same(suspect: &SuspectRecord, place: &[FrameRecord]) -> bool {
    are_same(&suspect.place, place)
}

/// Returns true if two lists of nested calls, innermost first, begin with the same statement and,
/// if both name it, the same caller.
fn are_same(one: &[FrameRecord], other: &[FrameRecord]) -> bool {
    let mut both = one.iter().zip(other);
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

    /// Adds a statement to the suspects as [`add`](Suspects::add) does; but a statement in `main`,
    /// or the failing one itself, comes after all others, because a wrong value in it was mostly
    /// made elsewhere.
    fn add_likely(&mut self, calls: &[FrameRecord], why: &str) {
        let (failing, is_main_a_caller) = (self.failing.clone(), self.is_main_a_caller);
        let block = self.block.clone();
        self.add_before(calls, (why, is_from_chain(why)), |it| {
            let is_caller = is_main_a_caller && it.function == MAIN;
            let is_wrapper = block
                .as_ref()
                .is_some_and(|block| block.is_wrapper(&it.function));
            is_caller || is_wrapper || (&it.file, it.line) == (&failing.0, failing.1)
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
            if tested && !known.tested && !is_from_chain(why) {
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

    /// Adds to the suspects the statement that writes out of its variable into another.
    fn add_overrun(&mut self, it: &OverrunRecord) {
        let why = match it.element {
            Some(element) => {
                let (variable, elements) = (&it.variable, it.elements);
                format!("writes to element {element} of {variable}, which has {elements}")
            }
            None => format!("writes past the end of {}", it.variable),
        };
        let why = match &it.return_of {
            Some(function) => format!("{why}, over the return address of {function}"),
            None => why,
        };
        match it.is_averted && it.is_unusual {
            true => self.add_tested(&it.place, &why),
            false => self.add(&it.place, &why),
        }
    }

    /// Adds to the suspects the statement that reads outside of an array. If the read is that of a
    /// text without a terminating zero, adds before it the statement that wrote the array's last
    /// byte, and so left no room for the zero.
    fn add_overread(&mut self, it: &OverreadRecord) {
        let variable = &it.access.variable;
        if it.is_text {
            let why = format!("fills {variable}, and leaves no room for a terminating 0");
            self.add_tested(&it.filled, &why);
        }
        let why = match it.access.element {
            Some(element) => {
                let elements = it.access.elements;
                format!("reads element {element} of {variable}, which has {elements}")
            }
            None => format!("reads past the end of {variable}"),
        };
        match it.is_text {
            true => self.add(&it.access.place, &why),
            false => self.add_tested(&it.access.place, &why),
        }
    }

    /// Adds to the suspects the place at which the variable of `it` should have been set, but was
    /// not: the statement that sets other fields of the variable's record or, if no such statement
    /// is known, the function or allocation with which the variable's life begins.
    fn add_unset(&mut self, it: &UnsetRecord) {
        let setter = it.place().first();
        let reader = it.read.as_ref().filter(|it| !it.function.is_empty());
        // The name begins with a variable of the function that reads it.
        let other = reader.filter(|reader| {
            it.variable.contains("->") && setter.is_some_and(|it| it.function != reader.function)
        });
        let variable = &match other {
            Some(reader) => format!("{} of {}", it.variable, short_function(&reader.function)),
            None => it.variable.clone(),
        };
        let why = match (it.beside.is_empty(), it.is_local) {
            (false, _) if it.is_reused => {
                format!("sets other fields anew, and leaves {variable} as it was")
            }
            (false, _) => format!("sets other fields, and leaves {variable} unset"),
            (true, true) => format!("leaves {variable} unset, which is read"),
            (true, false) => format!("allocates {variable}, which is read before it is set"),
        };
        self.add_tested(it.place(), &why);
    }

    /// Adds to the suspects the statement that AddressSanitizer reports to write outside of a
    /// variable, or to read there. What is written has room that does not depend on the run.
    fn add_access(&mut self, it: &AccessRecord) {
        let Some(variable) = it.name.as_ref().filter(|_| it.is_beside_variable()) else {
            return;
        };
        match it.writes {
            true => self.add(
                &it.place,
                &format!("writes outside of its variable, at {variable}"),
            ),
            false => self.add_likely(
                &it.place,
                &format!("reads outside of its variable, at {variable}"),
            ),
        }
    }

    /// Adds to the suspects what makes the recursion go on by which the stack overflows: the
    /// statement that closes the cycle of data, the call that has no limit, and conditions.
    fn add_recursion(&mut self, it: &RecursionRecord) {
        let (tested, rest): (Vec<_>, Vec<_>) = it.closed.iter().partition(|it| it.is_averted);
        for closed in tested {
            self.add_tested(&closed.place, CLOSES);
        }
        if it.is_ended == Some(true) {
            let calls: Vec<FrameRecord> = it.round.iter().rev().cloned().collect();
            self.add_tested(&calls, UNLIMITED);
        }
        for place in &it.decided {
            self.add_tested(std::slice::from_ref(place), GOES_ON);
        }
        for closed in rest {
            self.add(&closed.place, CLOSES);
        }
    }

    /// Adds to the suspects, for the heap block past whose end the run writes, the statements that
    /// made its size and those that decide how much is written: one of the two is wrong.
    /// If AddressSanitizer has reported the write (`is_reported`), it may be behind the end by little,
    /// so that what allocates a block as large as it was told is named as well.
    fn add_overflow(&mut self, block: &OverflowRecord, is_reported: bool) {
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
            self.add_short(block);
            return self.add_writer(block);
        };
        // The call computes the size from a value that it reads.
        if size.read.is_some() && !block.passes_size {
            self.add_short(block);
        }
        if let Some(read) = block.size_read_by() {
            self.add_likely(std::slice::from_ref(read), CHOSEN);
        }
        self.add_likely(&size.written, "makes the size of a block that is too short");
        if is_reported && block.passes_size {
            self.add_short(block);
        }
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

    /// Adds to the suspects the call that allocates the heap block. If it is also the one that fails,
    /// because the C library has found the damage when it was called again, it is no less suspect.
    fn add_short(&mut self, block: &OverflowRecord) {
        let failing = std::mem::take(&mut self.failing);
        self.add_likely(block.asked(), SHORT);
        self.failing = failing;
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
            self.add_overflow(block, it.access.is_some());
        }
        let by = it.switched.iter().filter_map(|it| it.by.as_ref());
        let is_told = |value: &&OriginRecord| {
            (it.unset.as_ref()).is_some_and(|it| it.begins_at(&value.written))
        };
        let unset = it.origin.iter().chain(by).flat_map(all);
        for unset in unset.filter(|it| it.unset && !is_told(it)) {
            self.add(&unset.written, "memory from here is read before it is set");
        }
        let is_averted = it.freed_together > 0;
        if !it.moved_early.is_empty() {
            let why = "uses a block where it was before its move";
            self.add_before(&it.used_late, (why, is_averted), |_| false);
            if it.access.is_some() || it.is_copied {
                let why = "moves a block that is used later where it was";
                self.add_before(&it.moved_early, (why, is_averted), |_| false);
            }
        }
        if it.freed_early.is_empty() {
            return;
        }
        let why = "frees what is used later";
        self.add_before(&it.freed_early, (why, is_averted), |_| false);
        let values = it.origin.iter().flat_map(all);
        for value in values.filter(|it| it.freed) {
            self.add(&value.written, "frees what is read later");
        }
        // What is freed a second time.
        let is_again =
            it.access.as_ref().is_some_and(|it| it.bytes == 0) || it.crash.ended == ABORTED;
        if let Some(value) = it.origin.as_ref().filter(|_| is_again) {
            self.add_likely(&value.written, of_value(value));
        }
        self.add(&it.used_late, "uses what was freed");
    }

    /// Adds to the suspects the statement that made the failing value, but only if another
    /// statement is known to have chosen the address to which this value was written.
    fn add_value(&mut self, it: &Explanation) {
        let is_chosen = it.observed.iter().any(|odd| odd.why == CHOOSES_PLACE);
        if let Some(value) = it.origin.as_ref().filter(|_| is_chosen) {
            self.add_likely(&value.written, of_value(value));
        }
    }

    /// Adds to the suspects the statements that made the value with which the run failed, and those
    /// that made the confirmed variables of the chain, the last variable first. The value stands in
    /// front of the variables, but after the last one if it is probably the same in both runs: if
    /// the passing run also executes the statement that wrote it, and no link has that statement.
    fn add_values(&mut self, it: &Explanation) {
        let links = it.chain.iter().rev().filter(|link| carries(link));
        let mut links: VecDeque<&LinkRecord> = links.collect();
        let is_same = |value: &&OriginRecord| value.in_both && !is_in_chain(value, &it.chain);
        let is_last = it.origin.as_ref().filter(is_same).is_some();
        if is_last {
            self.add_last_link(&mut links, &it.chain);
        }
        // Where nothing has set the value, no statement wrote it.
        if let Some(value) = it.origin.as_ref().filter(|it| !it.unset) {
            let is_made = |it: &&OriginRecord| !(it.copies || it.selects || it.unset || it.freed);
            let made = value.earlier.iter().find(is_made);
            match made.filter(|_| value.copies) {
                Some(made) => {
                    self.add_likely(&made.written, of_value(value));
                    self.add_likely(&value.written, COPIES);
                }
                None => self.add_likely(&value.written, of_value(value)),
            }
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

    /// Takes links from the front of `links` and makes their statements suspects, until a suspect
    /// is new, or all links are used. `chain` has all links of the chain.
    fn add_last_link(&mut self, links: &mut VecDeque<&LinkRecord>, chain: &[LinkRecord]) {
        let named = |it: &Suspects| it.found.len() + it.last.len();
        let before = named(self);
        while named(self) == before
            && let Some(link) = links.pop_front()
        {
            self.add_link(link, chain);
        }
    }

    /// Adds the statement that made the confirmed variable of `link` to the suspects. If this
    /// statement only copies a value, adds the statement that computed the value instead; but not
    /// if that is a suspect already, or the first writer of `chain`, which took the value from the
    /// input.
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
        match (made, &link.writer, link.instead.first()) {
            (_, Some(WriterRecord::Missed(_)), Some(instead)) => {
                self.add_likely(std::slice::from_ref(instead), IN_PLACE);
            }
            (Some(made), Some(WriterRecord::Statement(_)), _) => {
                self.add_likely(&made.written, of_writer(&made.written, chain));
            }
            (_, Some(WriterRecord::Statement(place) | WriterRecord::Missed(place)), _) => {
                let calls = [std::slice::from_ref(place), &link.calls].concat();
                self.add_likely(&calls, of_writer(&calls, chain));
            }
            _ => {}
        }
    }

    /// While there are fewer than [`NAMED`] suspects, adds the statements that wrote confirmed
    /// variables of `chain`, the last variable first. If there is no suspect at all, adds the
    /// statements that wrote variables of `chain` that are not confirmed.
    pub fn add_carriers(&mut self, chain: &[LinkRecord]) {
        for is_confirmed in [true, false] {
            if !is_confirmed && !self.found.is_empty() {
                return;
            }
            let is_it = |it: &&LinkRecord| {
                (it.confidence == Confidence::Confirmed) == is_confirmed && !is_in_buffer(it)
            };
            for link in chain.iter().rev().filter(is_it) {
                if let Some(WriterRecord::Statement(place) | WriterRecord::Missed(place)) =
                    &link.writer
                    && self.found.len() < NAMED
                {
                    let calls = [std::slice::from_ref(place), &link.calls].concat();
                    let why = of_writer(&calls, chain);
                    self.add_before(&calls, (why, is_from_chain(why)), |_| false);
                }
            }
        }
    }

    /// Moves tested suspects from `last`, the list after `found`, to the end of `found`.
    fn bring_tested_forward(&mut self) {
        let last = std::mem::take(&mut self.last);
        let (tested, last): (Vec<_>, Vec<_>) = last.into_iter().partition(|it| it.tested);
        self.found.extend(tested);
        self.last = last;
    }

    /// Adds to the suspects the statements that wrote the values from which the failing value was
    /// computed, or which the conditions `it.switched` compare: each of these conditions averts the
    /// crash when it is decided otherwise.
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

/// Returns what reports say of the statement that wrote `value`, a value with which the run fails.
fn of_value(value: &OriginRecord) -> &'static str {
    if value.selects { PLACE } else { VALUE }
}

/// Returns what reports say of the statement `calls` (innermost first) as a writer of variables of
/// `chain`, with the word for how sure it is (such as `confirmed`) that the chain has for its link
/// with this writer, the surest one if there are several.
fn of_writer(calls: &[FrameRecord], chain: &[LinkRecord]) -> &'static str {
    let Some(place) = own_place(calls) else {
        return COPIED;
    };
    let is_its = |link: &&LinkRecord| match &link.writer {
        Some(WriterRecord::Statement(writer) | WriterRecord::Missed(writer)) => {
            let by = own_place(&[std::slice::from_ref(writer), &link.calls].concat());
            by.is_some_and(|by| are_same(&by, &place))
        }
        _ => false,
    };
    let surest = chain.iter().filter(is_its).map(|link| link.confidence);
    surest.max().map_or(COPIED, of_confidence)
}

/// Returns what reports say of the statement that wrote a variable of the chain which is known with
/// `confidence`; the text ends with the word of this confidence.
fn of_confidence(confidence: Confidence) -> &'static str {
    match confidence {
        Confidence::Confirmed => CONFIRMED,
        Confidence::OneWayOnly => ONE_WAY,
        Confidence::NotConfirmed => NOT_CONFIRMED,
    }
}

/// Returns true if `why`, the text about a suspect, says that tests have confirmed a variable of
/// the chain.
fn is_from_chain(why: &str) -> bool {
    [CONFIRMED, IN_PLACE].contains(&why)
}

/// Returns a value's origin, and the origins of all values from which it was made.
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

/// Returns true if fewer than half of the statements that wrote the variables of `chain` are in
/// `main`, or fewer than [`WORKING`]. Then `main` only reads the input and calls the functions that
/// do the work, and the wrong statement is seldom in it.
fn is_main_a_caller(chain: &[LinkRecord]) -> bool {
    let writers = chain.iter().filter_map(|link| match &link.writer {
        Some(WriterRecord::Statement(place) | WriterRecord::Missed(place)) => Some(place),
        _ => None,
    });
    let (main, others): (Vec<_>, Vec<_>) = writers.partition(|place| place.function == MAIN);
    main.len() < others.len().max(WORKING)
}

/// Returns true if a link is confirmed and a statement wrote its variable, which is not in a
/// library's buffer.
fn carries(link: &LinkRecord) -> bool {
    let is_written = matches!(
        link.writer,
        Some(WriterRecord::Statement(_) | WriterRecord::Missed(_))
    );
    is_written && link.confidence == Confidence::Confirmed && !is_in_buffer(link)
}

/// Returns the statements of the program at which to look first: at most three that have computed a
/// number out of range, have damaged the heap, wrote the value with which the run failed, or made
/// the confirmed variables of the chain; and in addition statements at which a change averts the
/// failure.
pub fn suspects(it: &Explanation) -> Vec<SuspectRecord> {
    let mut all = Suspects {
        failing: (it.crash.file.clone(), it.crash.line),
        is_main_a_caller: is_main_a_caller(&it.chain),
        block: it.overflow.clone(),
        ..Suspects::default()
    };
    if let Some(recursion) = &it.recursion {
        all.add_recursion(recursion);
    }
    if let Some(unset) = &it.unset {
        all.add_unset(unset);
    }
    if let Some(text) = it.overread.as_ref().filter(|it| it.is_text) {
        all.add_overread(text);
    }
    if let Some(overrun) = &it.overrun {
        all.add_overrun(overrun);
    }
    if let Some(read) = it.overread.as_ref().filter(|it| !it.is_text) {
        all.add_overread(read);
    }
    if let Some(access) = it.access.as_ref().filter(|it| it.writes) {
        all.add_access(access);
    }
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
    if let Some(access) = it.access.as_ref().filter(|it| !it.writes) {
        all.add_access(access);
    }
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
mod tests;
