//! Finds a write of the failing run that begins in one variable and reaches into another, and that
//! makes the run fail: an array that is overrun, or an index that is too large. What it has
//! accessed is collected here for reads as well.

use std::collections::HashSet;
use std::ops::Range;
use std::rc::Rc;

use ddfuzz_triage::memory::{Maps, Memory};

use super::anomalies::callers;
use super::instructions::{ARGUMENTS, Executed};
use super::pointers::{How, Written, written};
use super::process::by_number;
use super::recorded::{ALL_ARGUMENTS, Recorded};
use super::run::{Next, Pace, Run};
use super::watchdog::TimeLimit;
use super::{Ending, Engine, EngineError, Side, Trace, if_supported};
use crate::crossing::{Bound, Crossing, Stay, leaves_record, stay};
use crate::dwarf::frames::STACK_POINTER;
use crate::graph::Graph;

/// Largest number of suspicious writes for which the state of the run before the write is read.
const READ: usize = 8;
/// Largest number of writes that are tested, and of reads. Each is tested in runs of its own.
pub(super) const TRIED: usize = 4;
/// Maximum number of calls that are reported for a write: the innermost calls that led to it.
const CALLERS: usize = 3;
/// Largest number of times that a run is stopped at one instruction.
const MOST_STOPS: usize = 5_000;
/// Factor of the time limit of a run that is stopped at each execution of one instruction, compared
/// with other tests.
const STOPPED: u32 = 4;
/// Largest number of bytes that a write may have written outside of its variable to be considered.
const MOST_BYTES: u64 = 1 << 16;

/// A write of the failing run that reaches out of its variable into another one. Without the write,
/// the run does not fail, or fails in another way.
#[derive(Clone, Debug)]
pub(crate) struct Overrun {
    /// The variable in which the write should have stayed, and those into which it reaches.
    pub crossing: Crossing,
    /// The addresses that were written.
    pub written: Range<u64>,
    /// Whether the write is to an element that its array does not have.
    pub is_element: bool,
    /// Address of the writing instruction, and those of the calls that led to it, innermost first.
    pub calls: Vec<u64>,
    /// Address of the first instruction of the function whose return address is overwritten, of the
    /// innermost one if there are several; `None` if no return address is overwritten.
    pub return_of: Option<u64>,
    /// Addresses of other instructions that continue this write at its end, in the same call of the
    /// function, such as one that writes the zero at the end of a text. Their writes are left out
    /// together with this write.
    pub next: Vec<u64>,
    /// Whether the run does not fail without the write; false if it ends in another way.
    pub is_averted: bool,
    /// Whether the same instruction, in the passing run, writes only within the bounds; if the
    /// passing run does not show it, whether the instruction does so at other times.
    pub is_unusual: bool,
}

/// The part (`written`) of a group of recorded accesses (`of`) that has crossed the bounds of the
/// variable in which it should have stayed, for reads as well as for writes.
pub(super) struct Found {
    pub crossing: Crossing,
    pub written: Range<u64>,
    bound: Bound,
    pub of: Written,
}

impl Found {
    /// Returns the index in the recording of the outermost access of the group on the crossed side
    /// of the variable: of the access to the highest byte if the end of the variable is crossed,
    /// otherwise of the access to the lowest byte.
    fn outermost(&self) -> usize {
        self.of.extremes[usize::from(self.written.end > self.crossing.has.end)]
    }
}

/// The memory accesses of the failing run, with the recording from which they are known, and the
/// memory graph at the last point.
pub(crate) struct Accesses {
    /// The recording of the whole failing run.
    pub whole: Rc<Recorded>,
    /// The memory graph of the failing run at its last point.
    pub graph: Graph,
    /// All accesses, in groups, each of one instruction or of one call of a library's function, in
    /// the order of their first accesses: the writes of the program's own code and of the library's
    /// functions that it calls, and the reads by those instructions on whose reads the failure
    /// depends.
    pub(super) all: Vec<Written>,
}

/// Returns the parts of the recorded write `it` that may leave their variable, each with what tells
/// in which array it should have stayed.
fn writes_of(it: &Written) -> Vec<(Bound, Range<u64>)> {
    let element = |array| Bound::Element {
        base: it.base,
        array,
    };
    let start = (element(it.arrays[0]), it.first..it.first + 1);
    match it.how {
        How::Counted => vec![start, (Bound::Filled(it.first), it.range.clone())],
        How::Text => vec![start, (Bound::Text(it.first), it.range.clone())],
        How::Called => vec![start, (Bound::Largest(it.first), it.range.clone())],
        How::InTurn if it.count > 1 => {
            let whole = (Bound::Filled(it.first), it.range.clone());
            let last = it.range.end - it.size..it.range.end;
            // Single bytes may be those of a whole record.
            let last = (it.size > 1).then(|| (element(it.arrays[1]), last));
            let mut both: Vec<_> = std::iter::once(whole).chain(last).collect();
            if it.is_read {
                // The element says more, and nothing is written as a whole.
                both.reverse();
            }
            both
        }
        How::InTurn | How::Anywhere => {
            let (low, high) = (it.range.start, it.range.end - it.size);
            let writes = [(high, it.arrays[1]), (low, it.arrays[0])];
            let writes = writes.map(|(at, array)| (element(array), at..at + it.size));
            writes.to_vec()
        }
    }
}

/// Returns where the write `it` has crossed the bounds of the variable that it is meant for, by the
/// first of its parts ([`writes_of`]) that has; `None` if all have stayed inside, or if that is not
/// known.
pub(super) fn crossed(graph: &Graph, engine: &Engine, it: &Written) -> Option<Found> {
    let object = |at| graph.containing(at).map(|it| it.0);
    let is_text = it.is_read && it.how == How::Text;
    writes_of(it).into_iter().find_map(|(bound, written)| {
        let written = match (bound, is_text) {
            (Bound::Text(_), true) => text_at(graph, it.first)?,
            _ => written,
        };
        // A pointer to one variable from which a constant leads to another is none to an array.
        if matches!(bound, Bound::Element { .. }) && object(it.root) != object(it.base) {
            return None;
        }
        match stay(graph, &engine.info.types, bound, &written)? {
            Stay::Inside => None,
            Stay::Crosses(mut crossing) => {
                // What is read one after another is told by its last element.
                let is_behind = it.range.end > crossing.has.end;
                let is_last = is_behind && it.is_read && it.size > 1 && it.how == How::InTurn;
                let written = match is_last {
                    true => it.range.end - it.size..it.range.end,
                    false => written,
                };
                // Not only the last element.
                if it.how == How::InTurn && is_behind && written.end == it.range.end {
                    crossing.beyond = crossing.has.end.max(it.first)..it.range.end;
                }
                let size = crossing.beyond.end - crossing.beyond.start;
                let of = it.clone();
                (size <= MOST_BYTES).then_some(Found {
                    crossing,
                    written,
                    bound,
                    of,
                })
            }
        }
    })
}

/// Returns the addresses of the access `found`. If the same instruction accesses elements in turn,
/// and has accessed the element directly before these addresses in another group of `all`, the
/// addresses begin with this element, as far as it is inside of the variable.
fn with_first(all: &[Written], found: &Found) -> Range<u64> {
    let (of, written) = (&found.of, &found.written);
    let is_first = |it: &&Written| {
        (it.pc, it.is_read, it.range.end) == (of.pc, of.is_read, written.start) && it.at < of.at
    };
    let first = all.iter().filter(|_| of.how == How::InTurn).rfind(is_first);
    let start = first.map_or(written.start, |it| {
        it.range.start.max(found.crossing.has.start)
    });
    start.min(written.start)..written.end
}

/// Returns those of the writes `all` that write behind the variable of the write `found` as well,
/// each with the addresses there: later writes by way of the same variable, by other instructions in
/// the same call of the same function, up to the address `end`, or continuing what is known there.
fn next_writes<'a>(
    whole: &Recorded,
    all: &'a [Written],
    found: &Found,
    end: u64,
) -> Vec<(&'a Written, Range<u64>)> {
    let stack = |at: usize| whole.executed[at].registers[usize::from(STACK_POINTER)];
    let (of, has) = (&found.of, &found.crossing.has);
    let mut end = end.max(found.crossing.beyond.end);
    let mut next: Vec<(&Written, Range<u64>)> = Vec::new();
    // What is written to a field behind the variable is meant for it.
    let others = all
        .iter()
        .filter(|it| !it.is_read && it.pc != of.pc && has.contains(&it.base));
    // A group has writes of several calls: the highest one may be of this call.
    let later = others.filter(|it| {
        let last = it.extremes[1];
        last > of.at && stack(last) == stack(of.at)
    });
    for it in later {
        let start = match it.count {
            1 => it.range.start,
            _ => it.range.end - it.size,
        };
        if (has.end..=end).contains(&start) {
            end = end.max(it.range.end);
            next.push((it, start..it.range.end));
        }
    }
    next
}

/// Returns the range of the array to whose element `found` writes, as distances in bytes from the
/// pointer to which the writing instruction adds an index; `None` if the write is not to one
/// element, or if the instruction adds no index.
fn inside_of(whole: &Recorded, found: &Found) -> Option<Range<i64>> {
    let is_element = matches!(found.bound, Bound::Element { .. });
    let base = whole.executed[found.outermost()].element_base();
    let base = base.filter(|_| is_element)?;
    let distance = |at: u64| at.wrapping_sub(base) as i64;
    let has = &found.crossing.has;
    Some(distance(has.start)..distance(has.end))
}

/// Finds the innermost function whose return address is stored at one of the addresses `written`,
/// among the functions that are being executed at the recorded instruction with the index `at`.
/// Returns the address of the function's first instruction; `None` if there is no such function.
fn return_of(whole: &Recorded, at: usize, written: &Range<u64>) -> Option<u64> {
    let calls = callers(whole, at, usize::MAX).into_iter();
    let mut calls = calls.filter(|call| {
        let stack = whole.executed[*call].registers[usize::from(STACK_POINTER)];
        written.start < stack && stack.wrapping_sub(8) < written.end
    });
    calls.next().map(|call| whole.executed[call + 1].pc())
}

/// Returns the addresses of the text that begins at the address `first` in the state `graph`, with
/// its terminating zero. If the object that contains `first` has no zero from there on, the
/// addresses end with the byte behind the object. `None` if no object contains `first`.
fn text_at(graph: &Graph, first: u64) -> Option<Range<u64>> {
    let (id, offset) = graph.containing(first)?;
    let bytes = &graph.objects[id].bytes[offset as usize..];
    let length = bytes.iter().position(|it| *it == 0).unwrap_or(bytes.len());
    Some(first..first + length as u64 + 1)
}

/// Returns true if the write `it` may have left its variable. `graph` is the state at the end of
/// the run, in which the pointer to the written record need not exist any more.
fn may_have_crossed(graph: &Graph, engine: &Engine, it: &Written) -> bool {
    let leaves = |(bound, written): &(Bound, Range<u64>)| match bound {
        Bound::Element {
            array: Some(array), ..
        } => leaves_record(graph, &engine.info.types, *array, written),
        _ => false,
    };
    crossed(graph, engine, it).is_some() || writes_of(it).iter().any(leaves)
}

/// A memory graph, and the ranges of addresses that the program may write at the same point.
type LastState = (Graph, Vec<Range<u64>>);

impl Engine {
    /// Finds a write of the failing run, among `accesses`, that leaves the variable in which it
    /// should have stayed, and without which the run does not fail. If there is none, finds such a
    /// write without which the run fails in another way; the same instruction must then stay inside
    /// of its variable in the passing run or, if that does not show it, at other times. A run
    /// without the write may take `limit`; by how it ends, `averts` tells whether it does not fail,
    /// and `fails` whether it fails in the same way. `None` if there is no such write.
    ///
    /// # Errors
    /// When the runs cannot be made.
    pub(crate) fn overrun(
        &mut self,
        accesses: &Accesses,
        limit: TimeLimit,
        (averts, fails): (impl Fn(&Ending) -> bool, impl Fn(&Ending) -> bool),
    ) -> Result<Option<Overrun>, EngineError> {
        let Accesses { whole, graph, all } = accesses;
        let (mut tried, mut other) = (HashSet::new(), None);
        for it in self.doubtful(whole, graph, all) {
            if tried.len() >= TRIED || self.facts_until.is_over() {
                break;
            }
            let Some((found, _)) = if_supported(self.read_before(whole, it))? else {
                continue;
            };
            if !tried.insert(it.pc) {
                continue;
            }
            let mut beyond = vec![found.crossing.beyond.clone()];
            let others = all
                .iter()
                .filter(|other| other.pc == it.pc && !other.is_read);
            let others = others.filter_map(|other| crossed(graph, self, other));
            beyond.extend(others.map(|it| it.crossing.beyond));
            let end = beyond.iter().map(|it| it.end).max().unwrap_or_default();
            let next = next_writes(whole, all, &found, end);
            beyond.extend(next.iter().map(|it| it.1.clone()));
            let undone = std::iter::once(it).chain(next.iter().map(|it| it.0));
            let undone: Vec<&Written> = undone.collect();
            let element = inside_of(whole, &found);
            let ending = self.without_writes(whole, &undone, (&beyond, element), limit)?;
            let is_averted = averts(&ending);
            if is_averted || other.is_none() && !fails(&ending) {
                let mut told = self.told(whole, graph, all, found)?;
                let ends = next.iter().map(|it| it.1.end);
                let end = ends.fold(told.crossing.beyond.end, u64::max);
                told.return_of = return_of(whole, it.at, &(told.crossing.beyond.start..end));
                told.next = next.iter().map(|it| it.0.pc).collect();
                told.is_averted = is_averted;
                if is_averted {
                    return Ok(Some(told));
                }
                other = Some(told).filter(|it| it.is_unusual);
            }
        }
        Ok(other)
    }

    /// Records the failing run `failing`. Returns what it has written, and what those of its
    /// instructions have read on whose reads the failure depends; `None` if the run cannot be
    /// recorded, such as one that is too long.
    ///
    /// # Errors
    /// When the runs cannot be made.
    pub(crate) fn accesses(&mut self, failing: &Trace) -> Result<Option<Accesses>, EngineError> {
        let Some(whole) = if_supported(self.whole_run(&failing.points).map(Some))? else {
            return Ok(None);
        };
        let Some((graph, areas)) = self.last_state(&whole)? else {
            return Ok(None);
        };
        let reading = self.reading(&failing.ending);
        let all = written(&whole, &areas, |pc| self.is_user(pc), &reading);
        Ok(Some(Accesses { whole, graph, all }))
    }

    /// Returns the memory graph at the last point of the recorded failing run, and the memory that
    /// the program may write at this point; `None` if no point was recorded.
    fn last_state(&mut self, whole: &Recorded) -> Result<Option<LastState>, EngineError> {
        let Some((_, last)) = whole.points.last() else {
            return Ok(None);
        };
        let mut run = self.start(Side::Failing)?;
        self.run_to(&mut run, *last)?;
        let maps = Maps::of(run.process.pid);
        let areas = maps.iter().filter(|it| it.writable);
        let areas = areas.map(|it| it.start..it.end).collect();
        Ok(Some((self.capture(&mut run)?.graph, areas)))
    }

    /// Returns those of the writes `all` that may have left their variable, at most [`READ`], in
    /// the order of time. `graph`, the memory graph at the end of the run, shows which writes these
    /// are. Of the writes to local variables that no longer exist at the end, each instruction's
    /// longest one and one of medium length are returned instead.
    fn doubtful<'a>(
        &self,
        whole: &Recorded,
        graph: &Graph,
        all: &'a [Written],
    ) -> Vec<&'a Written> {
        let stack = |it: &Executed| it.registers[usize::from(STACK_POINTER)];
        let mut highest: Vec<u64> = whole.executed.iter().map(stack).collect();
        for at in (1..highest.len()).rev() {
            highest[at - 1] = highest[at - 1].max(highest[at]);
        }
        // What is below the stack pointer of a later instruction is gone.
        let lowest = whole.executed.iter().map(stack).min().unwrap_or(0);
        let top = whole.executed.iter().map(stack).max().unwrap_or(0);
        // Frames below a damaged one are not found at the end.
        let is_lost =
            |it: &Written| (lowest..top).contains(&it.base) && graph.containing(it.base).is_none();
        let is_gone = |it: &&Written| (lowest..highest[it.at]).contains(&it.first) || is_lost(it);
        let length = |it: &Written| it.range.end - it.range.start;
        let mut found: Vec<&Written> = Vec::new();
        let all: Vec<&Written> = all.iter().filter(|it| !it.is_read).collect();
        for it in all.iter().copied() {
            let is_new = !found.iter().any(|other| other.pc == it.pc);
            if !is_gone(&it) && is_new && may_have_crossed(graph, self, it) {
                found.push(it);
            }
        }
        let (mut gone, mut known) = (Vec::new(), HashSet::new());
        let those = all.iter().copied().filter(is_gone);
        for it in those.filter(|it| known.insert(it.pc)) {
            let same = all.iter().copied().filter(|other| other.pc == it.pc);
            let same = same.filter(is_gone);
            let mut same: Vec<&Written> = same
                .filter(|it| it.count > 1 || it.base != it.first)
                .collect();
            same.sort_by_key(|it| length(it));
            // The stack may be damaged before the last of them.
            let middle = same.get(same.len() / 2).filter(|_| same.len() > 2);
            gone.extend(same.last().into_iter().chain(middle).copied());
        }
        gone.sort_by_key(|it| std::cmp::Reverse(length(it)));
        found.extend(gone);
        found.truncate(READ);
        found.sort_by_key(|it| it.at);
        found
    }

    /// Makes the failing run, and restores the memory `beyond` after each execution of an
    /// instruction of the writes `all`, for the first [`MOST_STOPS`] executions. `element`, if
    /// given, is the range of an array ([`inside_of`]), as distances in bytes from the pointer that
    /// the first of these instructions uses: then also undoes each write of this instruction
    /// outside of that range, such as one in another call of its function. The run may take
    /// [`STOPPED`] times `limit`. Returns how the run ends.
    fn without_writes(
        &mut self,
        whole: &Recorded,
        all: &[&Written],
        (beyond, element): (&[Range<u64>], Option<Range<i64>>),
        limit: TimeLimit,
    ) -> Result<Ending, EngineError> {
        self.changed_runs += 1;
        let mut run = self.start(Side::Failing)?;
        for it in all {
            run.process.set_breakpoint(it.pc)?;
        }
        let _limit = run.process.limit(limit.times(STOPPED));
        let read = |run: &mut Run| -> Vec<(u64, Vec<u8>)> {
            let all = beyond.iter();
            let read = all.map(|it| {
                (
                    it.start,
                    run.process.bytes(it.start, (it.end - it.start) as usize),
                )
            });
            read.collect()
        };
        let mut stops = 0;
        loop {
            self.check_time()?;
            match self.resume(&mut run.process, Pace::Free)? {
                Next::Ended(ending) => return Ok(*ending),
                Next::Other(_) => {}
                Next::Breakpoint(registers) => {
                    let mut before = read(&mut run);
                    let first = &whole.executed[all[0].at];
                    let now = Executed::again(first.instruction, by_number(&registers));
                    let inside = (element.as_ref()).filter(|_| registers.rip == all[0].pc);
                    let written = now.written().zip(now.element_base());
                    if let Some((inside, ((at, size), base))) = inside.zip(written)
                        && !inside.contains(&(at.wrapping_sub(base) as i64))
                    {
                        before.push((at, run.process.bytes(at, size as usize)));
                    }
                    let is_it = |it: &&&Written| it.pc == registers.rip;
                    let at = all.iter().find(is_it).map_or(all[0].at, |it| it.at);
                    if let Some(ending) = self.pass_write(&mut run, &whole.executed[at])? {
                        return Ok(ending);
                    }
                    for (address, bytes) in before {
                        run.process.write(address, &bytes)?;
                    }
                    stops += 1;
                    if stops >= MOST_STOPS {
                        for it in all {
                            run.process.remove_breakpoint(it.pc)?;
                        }
                    }
                }
            }
        }
    }

    /// Lets a run that is stopped at the instruction `executed` execute it and, if it is a call,
    /// the whole called function. Returns how the run ended, if it ended meanwhile.
    fn pass_write(
        &mut self,
        run: &mut Run,
        executed: &Executed,
    ) -> Result<Option<Ending>, EngineError> {
        run.process.step_over_here()?;
        if !executed.is_call() {
            return Ok(None);
        }
        let left = self.leave_call(run, executed.instruction.next_ip())?;
        Ok(left.err().map(|ending| *ending))
    }

    /// Returns the record of the write `found`, with the calls that led to it, and whether the same
    /// instruction stays within its bounds at other times.
    pub(super) fn told(
        &mut self,
        whole: &Rc<Recorded>,
        graph: &Graph,
        all: &[Written],
        found: Found,
    ) -> Result<Overrun, EngineError> {
        let pcs = callers(whole, found.of.told_at(), CALLERS).into_iter();
        let pcs = pcs.map(|at| whole.executed[at].pc());
        let own: Vec<u64> = pcs.filter(|pc| self.is_user(*pc)).collect();
        let is_inside = |it: &Written| {
            let writes = writes_of(it).into_iter();
            let stays = writes
                .filter_map(|(bound, written)| stay(graph, &self.info.types, bound, &written));
            let stays: Vec<Stay> = stays.collect();
            !stays.is_empty() && stays.iter().all(|it| *it == Stay::Inside)
        };
        let has = &found.crossing.has;
        let starts_inside = found.of.count > 1 && has.contains(&found.of.first);
        let others = all
            .iter()
            .filter(|it| it.pc == found.of.pc && it.at != found.of.at)
            .filter(|it| it.is_read == found.of.is_read);
        let is_usual = starts_inside || others.into_iter().any(is_inside);
        let in_passing = if_supported(self.in_passing_run(whole, &found).map(Some))?.flatten();
        Ok(Overrun {
            is_element: matches!(found.bound, Bound::Element { .. })
                || found.of.is_read && found.of.size > 1,
            written: with_first(all, &found),
            calls: std::iter::once(found.of.pc).chain(own).collect(),
            return_of: None,
            next: Vec::new(),
            is_averted: false,
            is_unusual: in_passing.unwrap_or(is_usual),
            crossing: found.crossing,
        })
    }

    /// Returns whether the instruction of the access `found` stays, in the passing run, within the
    /// bounds that its variable has in the failing run. Only executions count in which its function
    /// is called from the same place, among the first [`MOST_STOPS`] executions. `None` if there is
    /// none, or if the bounds are not known.
    fn in_passing_run(
        &mut self,
        whole: &Recorded,
        found: &Found,
    ) -> Result<Option<bool>, EngineError> {
        let of = &found.of;
        let Some(allowed) = Allowed::of(whole, found) else {
            return Ok(None);
        };
        let executed = &whole.executed[found.outermost()];
        let site = callers(whole, found.outermost(), 1).first().copied();
        let site = site.map(|at| whole.executed[at].instruction.next_ip());
        let mut run = self.start(Side::Passing)?;
        run.process.set_breakpoint(of.pc)?;
        let (mut is_executed, mut last) = (false, 0..0);
        for _ in 0..MOST_STOPS {
            self.check_time()?;
            match self.resume(&mut run.process, Pace::Free)? {
                Next::Ended(_) => break,
                Next::Other(_) => {}
                Next::Breakpoint(registers) => {
                    let from = self.frames(&mut run.process)?.get(1).map(|it| it.pc);
                    if site.is_some() && from != site {
                        if self.pass_write(&mut run, executed)?.is_some() {
                            break;
                        }
                        continue;
                    }
                    let now = Executed::again(executed.instruction, by_number(&registers));
                    let before = allowed.seen(&now, &mut run);
                    if self.pass_write(&mut run, executed)?.is_some() {
                        break;
                    }
                    let length = allowed.length(&now, &before, &mut run, &mut last);
                    if !allowed.room.contains(&length) {
                        return Ok(Some(false));
                    }
                    is_executed = true;
                }
            }
        }
        Ok(is_executed.then_some(true))
    }
}

/// The bounds, measured from a pointer, within which an instruction stays inside of its variable
/// when it writes or reads.
struct Allowed {
    how: How,
    is_read: bool,
    /// Range of allowed numbers of bytes that are written or read from the pointer on; for an
    /// instruction that accesses one element, range of allowed distances of this element from the
    /// pointer, in bytes.
    room: Range<i64>,
    /// DWARF number of the register with the pointer to the memory that a library's function
    /// writes.
    argument: usize,
}

impl Allowed {
    /// Returns the bounds of the access `found`; `None` if they are not known.
    fn of(whole: &Recorded, found: &Found) -> Option<Allowed> {
        let executed = &whole.executed[found.outermost()];
        let (of, has) = (&found.of, &found.crossing.has);
        let distance = |at: u64, from: u64| at.wrapping_sub(from) as i64;
        let arguments = ALL_ARGUMENTS.into_iter();
        let mut arguments = arguments.filter(|it| executed.registers[*it] == of.first);
        let (how, room) = match (of.how, found.bound) {
            (How::Counted | How::Text | How::Called, Bound::Element { .. }) => return None,
            (How::InTurn | How::Anywhere, Bound::Element { .. }) => {
                let base = executed.element_base()?;
                let end = has.end.max(found.crossing.reached);
                let room = distance(has.start, base)..distance(end, base);
                (How::Anywhere, room)
            }
            (how, _) => {
                // The first element may be apart, as its constant may lead to a field.
                let is_second = of.is_read && of.first == has.start + of.size;
                let first = if is_second { has.start } else { of.first };
                (how, 0..distance(found.crossing.reached, first) + 1)
            }
        };
        let argument = arguments.next().unwrap_or(ARGUMENTS[0]);
        Some(Allowed {
            how,
            is_read: of.is_read,
            room,
            argument,
        })
    }

    /// Returns the memory behind the pointer that is passed to a library's function, before the
    /// call; empty for other instructions.
    fn seen(&self, now: &Executed, run: &mut Run) -> Vec<u8> {
        match self.how {
            How::Text | How::Called => {
                let length = self.room.end.max(0) as usize + 64;
                run.process.bytes(now.registers[self.argument], length)
            }
            _ => Vec::new(),
        }
    }

    /// Returns address and size in bytes of the memory that the instruction `now` reads or, if the
    /// examined access is a write, of the memory that it writes; `None` if there is no such memory.
    fn accessed(&self, now: &Executed) -> Option<(u64, u64)> {
        match self.is_read {
            true => now.read(),
            false => now.written(),
        }
    }

    /// Returns the number of bytes that were written from the pointer on; for an instruction that
    /// writes to one element, the distance of the write from the pointer, in bytes. `last` has the
    /// addresses that the instruction has written so far without a gap, and is updated.
    fn length(&self, now: &Executed, before: &[u8], run: &mut Run, last: &mut Range<u64>) -> i64 {
        match self.how {
            How::Counted => now.registers[ARGUMENTS[2]] as i64,
            How::Text if self.is_read => {
                let end = before.iter().position(|it| *it == 0);
                end.unwrap_or(before.len()) as i64 + 1
            }
            How::Text | How::Called => {
                let after = run
                    .process
                    .bytes(now.registers[self.argument], before.len());
                let mut pairs = before.iter().zip(&after);
                pairs
                    .rposition(|(one, other)| one != other)
                    .map_or(0, |at| at as i64 + 1)
            }
            How::Anywhere => {
                let base = now.element_base().unwrap_or(0);
                self.accessed(now)
                    .map_or(0, |it| it.0.wrapping_sub(base) as i64)
            }
            How::InTurn => {
                let (at, size) = self.accessed(now).unwrap_or((0, 0));
                *last = match at == last.end {
                    true => last.start..at + size,
                    false => at..at + size,
                };
                (last.end - last.start) as i64
            }
        }
    }
}
