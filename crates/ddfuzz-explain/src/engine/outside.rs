//! Finds a read of the failing run outside of the array to which its address belongs, or of a text
//! that has no terminating zero, and tests whether the run fails by it.

use std::collections::HashSet;
use std::ops::Range;

use ddfuzz_triage::memory::Memory;

use super::bounds::{Accesses, Found, Overrun, TRIED, crossed};
use super::instructions::Executed;
use super::pointers::{How, Written};
use super::process::by_number;
use super::recorded::{ALL_ARGUMENTS, Recorded};
use super::run::{Next, Pace, Run};
use super::watchdog::TimeLimit;
use super::writer::Watched;
use super::{Ending, Engine, EngineError, Point, Side, Trace, if_supported};
use crate::crossing::Crossing;
use crate::graph::Graph;

/// Largest number of times that a run is stopped at one instruction. After that, the run goes on
/// unchanged.
const MOST_STOPS: usize = 5_000;
/// Factor of the time limit of a run that is stopped at each execution of one instruction, compared
/// with other changed runs.
const STOPPED: u32 = 4;

/// How a changed run differs from the failing run at a read outside of an array: by another value
/// that is read, or by an end of the text inside of the array.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Instead {
    /// The first or the last element of the array, whichever is nearer to the read, is read
    /// instead.
    Nearest,
    /// Zeros are read instead.
    Zero,
    /// The last byte of the array is a zero, which ends the text.
    Terminator,
}

/// A read of the failing run that leaves its array: of an element that the array does not have, or
/// of a text that has no terminating zero in the array. The run does not fail if another value is
/// read, or if the text ends inside of the array.
#[derive(Clone, Debug)]
pub(crate) struct Overread {
    /// The read. In an [`Overrun`] of a read, all that is said there of written memory holds for
    /// the memory that is read.
    pub read: Overrun,
    /// How the run that does not fail differs from the failing run at this read.
    pub instead: Instead,
    /// If the array has a text without a terminating zero: addresses of the statement that has
    /// written the last byte of the array, and of the calls that led to this statement, innermost
    /// first. Empty if there is no such text, or if the statement is not known.
    pub filled: Vec<u64>,
}

impl Engine {
    /// Returns the addresses of those of the program's own instructions on whose reads the failure
    /// depends; empty if that cannot be found out for the failing run, which ends with `ending`.
    pub(super) fn reading(&mut self, ending: &Ending) -> HashSet<u64> {
        let Some(slice) = self.failure_slice(ending) else {
            return HashSet::new();
        };
        let executed = &slice.recorded.executed;
        let last = executed.iter().rposition(|it| self.is_user(it.pc()));
        let all = slice.order.iter().map(|it| it.at).chain(last);
        let reads = all.map(|at| &executed[at]).filter(|it| {
            let is_read = it.texts != 0 || !it.is_library_call() && it.read().is_some();
            let is_read = is_read || it.calls_by_memory();
            is_read && !it.is_pop()
        });
        let pcs: HashSet<u64> = reads.map(Executed::pc).collect();
        pcs.into_iter().filter(|pc| self.is_user(*pc)).collect()
    }

    /// Finds a read of the failing run, among `accesses`, that leaves the array in which it should
    /// have stayed, and by which the run fails. The read is one of a text that has no terminating
    /// zero in the array or, unless `is_text` is set, one of an element that the array does not
    /// have. As a test, the run is made with another value ([`Instead`]) in place of what is read
    /// outside; the run may take `limit`, and by how it ends, `averts` tells whether it does not
    /// fail. In the passing run or, if that does not show it, at other times, the same instruction
    /// must stay inside of its array. `None` if there is no such read.
    ///
    /// # Errors
    /// When the runs cannot be made.
    pub(crate) fn overread(
        &mut self,
        accesses: &Accesses,
        limit: TimeLimit,
        averts: impl Fn(&Ending) -> bool,
        is_text: bool,
    ) -> Result<Option<Overread>, EngineError> {
        let Accesses { whole, graph, all } = accesses;
        for it in self.doubtful_reads(accesses).into_iter().take(TRIED) {
            if self.facts_until.is_over() {
                break;
            }
            let Some((found, before)) = if_supported(self.read_before(whole, it))? else {
                continue;
            };
            let is_unterminated = has_no_end(&before, &found);
            if is_text && !is_unterminated {
                continue;
            }
            let ways: &[Instead] = match is_unterminated {
                true => &[Instead::Terminator],
                false => &[Instead::Nearest, Instead::Zero],
            };
            for instead in ways {
                let ending = self.with_other_value(whole, (&found, *instead), limit)?;
                if !averts(&ending) {
                    continue;
                }
                let point = whole.passed(at_of(&found)).map(|it| whole.points[it].1);
                let end = found.crossing.has.end;
                let told = self.told(whole, graph, all, found)?;
                if !told.is_unusual {
                    break;
                }
                let read = Overrun {
                    is_averted: true,
                    ..told
                };
                let filled = match point.filter(|_| is_unterminated) {
                    Some(point) => self.last_writer(point, end - 1)?,
                    None => Vec::new(),
                };
                return Ok(Some(Overread {
                    read,
                    instead: *instead,
                    filled,
                }));
            }
        }
        Ok(None)
    }

    /// Finds out whether AddressSanitizer reports, at the end of the failing run `failing`, a read
    /// of a text that has no terminating zero in its object, and returns this read. As a test, the
    /// run goes on from its last point with a zero in the last byte of the object; it may take
    /// `limit`, and by how it ends, `averts` tells whether it does not fail. `None` if it fails, if
    /// another access is reported, or if that is not known.
    ///
    /// # Errors
    /// When the runs cannot be made.
    pub(crate) fn reported_text(
        &mut self,
        failing: &Trace,
        limit: TimeLimit,
        averts: impl Fn(&Ending) -> bool,
    ) -> Result<Option<Overread>, EngineError> {
        let reported = self.reported.clone().filter(|it| !it.is_write);
        let Some((reported, last)) = reported.zip(failing.points.last()) else {
            return Ok(None);
        };
        // It is the first byte of the access, or the first behind the object.
        let at = reported.address;
        let object = reported.object.map(|it| it.range);
        let Some(has) = object.filter(|it| (it.start..=it.end).contains(&at)) else {
            return Ok(None);
        };
        let mut run = self.start(Side::Failing)?;
        self.run_to(&mut run, *last)?;
        let graph = self.capture(&mut run)?.graph;
        let bytes = run.process.bytes(has.start, (has.end - has.start) as usize);
        let begins = bytes.iter().rposition(|it| *it == 0);
        let first = has.start + begins.map_or(0, |it| it as u64 + 1);
        let is_text = first < has.end && (at == has.end || at >= first);
        let Some((id, 0)) = graph.containing(has.start).filter(|_| is_text) else {
            return Ok(None);
        };
        self.changed_runs += 1;
        run.process.write(has.end - 1, &[0])?;
        let _limit = run.process.limit(limit);
        let ending = loop {
            self.check_time()?;
            if let Next::Ended(ending) = self.resume(&mut run.process, Pace::Free)? {
                break *ending;
            }
        };
        if !averts(&ending) {
            return Ok(None);
        }
        let written = first..first.saturating_add(reported.size).max(has.end + 1);
        let read = Overrun {
            crossing: behind(graph.name(id, ""), has.clone(), written.end),
            written,
            is_element: false,
            calls: self.failing_calls(&failing.ending),
            return_of: None,
            next: Vec::new(),
            is_averted: true,
            is_unusual: true,
        };
        Ok(Some(Overread {
            read,
            instead: Instead::Terminator,
            filled: self.last_writer(*last, has.end - 1)?,
        }))
    }

    /// Returns those reads among `accesses` that have left their variable, judged by the variables
    /// that exist at the end of the run: the last such group of reads of each instruction, in the
    /// order of time.
    fn doubtful_reads<'a>(&self, accesses: &'a Accesses) -> Vec<&'a Written> {
        let mut known = HashSet::new();
        let reads = accesses.all.iter().rev().filter(|it| it.is_read);
        let reads = reads.filter(|it| {
            !known.contains(&it.pc)
                && crossed(&accesses.graph, self, it).is_some()
                && known.insert(it.pc)
        });
        let mut found: Vec<&Written> = reads.collect();
        found.reverse();
        found
    }

    /// Returns the addresses of the statement that was the last to write the byte at `address`
    /// before the point `point` of the failing run, and of the calls that led to this statement,
    /// innermost first; empty if no such statement is known.
    fn last_writer(&mut self, point: Point, address: u64) -> Result<Vec<u64>, EngineError> {
        let watched = Watched {
            address,
            size: 1,
            frame: None,
        };
        let found = self.last_writes(Side::Failing, None, point, watched);
        let found = if_supported(found.map(Some))?.and_then(|it| it.any);
        Ok(found.map_or_else(Vec::new, |it| it.writer.calls))
    }

    /// Makes the failing run with the value `instead` in place of what the instruction of the read
    /// `found` reads outside of its array, and returns how the run ends. The value is written to
    /// the memory before each such read, and the old bytes are written back after it.
    /// [`Instead::Terminator`] is written before the first byte of a text is read that has no zero
    /// in the array; it stays in the array's last byte. The run may take a multiple of `limit`, as
    /// it is stopped often. `whole` is the recording of the run.
    fn with_other_value(
        &mut self,
        whole: &Recorded,
        (found, instead): (&Found, Instead),
        limit: TimeLimit,
    ) -> Result<Ending, EngineError> {
        self.changed_runs += 1;
        let executed = &whole.executed[found.of.at];
        let mut run = self.start(Side::Failing)?;
        run.process.set_breakpoint(found.of.pc)?;
        let _limit = run.process.limit(limit.times(STOPPED));
        let mut stops = 0;
        loop {
            self.check_time()?;
            let registers = match self.resume(&mut run.process, Pace::Free)? {
                Next::Ended(ending) => return Ok(*ending),
                Next::Other(_) => continue,
                Next::Breakpoint(registers) => registers,
            };
            let now = Executed::again(executed.instruction, by_number(&registers));
            let changed = change(&mut run, &now, (found, instead));
            if let Some((at, _, other)) = &changed {
                run.process.write(*at, other)?;
            }
            run.process.step_over_here()?;
            if let Some((at, before, _)) = changed.filter(|_| instead != Instead::Terminator) {
                run.process.write(at, &before)?;
            }
            stops += 1;
            if stops >= MOST_STOPS {
                run.process.remove_breakpoint(found.of.pc)?;
            }
        }
    }

    /// Makes the failing run up to the beginning of the statement of the access `it` in the
    /// recording `whole`. Returns the part of the access that crosses the bounds of its variable,
    /// and the memory graph at this point; `None` if no part does, or if no point before the access
    /// is known.
    pub(super) fn read_before(
        &mut self,
        whole: &Recorded,
        it: &Written,
    ) -> Result<Option<(Found, Graph)>, EngineError> {
        let Some(point) = whole.passed(it.told_at()).map(|it| whole.points[it].1) else {
            return Ok(None);
        };
        let mut run = self.start(Side::Failing)?;
        self.run_to(&mut run, point)?;
        let graph = self.capture(&mut run)?.graph;
        Ok(crossed(&graph, self, it).map(|found| (found, graph)))
    }
}

/// Returns the crossing of a text that begins in the variable `object`, with the addresses `has`,
/// and reaches behind it up to the address `end`.
fn behind(object: String, has: Range<u64>, end: u64) -> Crossing {
    Crossing {
        object,
        element: 1,
        beyond: has.end..end,
        into: Vec::new(),
        reached: has.end,
        has,
    }
}

/// Returns the change in the memory of `run` that tests the read `found` with the value `instead`:
/// the address, the bytes that are there now, and those to write there. `run` is stopped before the
/// instruction `now`, that of the read. `None` if this execution of the instruction does not read
/// outside of the array, or not the text without an end, or if memory cannot be read.
fn change(
    run: &mut Run,
    now: &Executed,
    (found, instead): (&Found, Instead),
) -> Option<(u64, Vec<u8>, Vec<u8>)> {
    let Crossing { has, beyond, .. } = &found.crossing;
    let first = found.of.first;
    if instead == Instead::Terminator {
        let mut arguments = ALL_ARGUMENTS.iter();
        let is_it = match found.of.how {
            How::Text => arguments.any(|it| now.registers[*it] == first),
            _ => now.read().is_some_and(|it| it.0 == first),
        };
        let text = run.process.bytes(first, (has.end - first) as usize);
        let last = text.last().filter(|_| is_it && !text.contains(&0));
        return last.map(|last| (has.end - 1, vec![*last], vec![0]));
    }
    let (at, size) = now.read()?;
    let is_beyond = at < beyond.end && beyond.start < at.saturating_add(size);
    if !is_beyond {
        return None;
    }
    // The same part of the first element, or of the last one.
    let element = found.crossing.element;
    let part = (at.wrapping_sub(has.start) as i64).rem_euclid(element as i64) as u64;
    let nearest = match at < has.start {
        true => has.start,
        false => has.end - element,
    };
    let other = match instead {
        Instead::Nearest => run.process.bytes(nearest + part, size as usize),
        _ => vec![0; size as usize],
    };
    let before = run.process.bytes(at, size as usize);
    // Where no memory is, nothing can be put.
    let is_whole = before.len() == size as usize && other.len() == before.len();
    is_whole.then_some((at, before, other))
}

/// Returns the index in the recording of the access, among those of the group `found`, that stands
/// for the group. It is the one at the crossed end of the variable if they are in any order
/// ([`How::Anywhere`]); else it is the first.
fn at_of(found: &Found) -> usize {
    match found.of.how {
        How::Anywhere => {
            let is_behind = found.written.end > found.crossing.has.end;
            found.of.extremes[usize::from(is_behind)]
        }
        _ => found.of.at,
    }
}

/// Returns true if the access `found` has read a text from a byte of its array on, one byte after
/// another or by a library's function, and the array has no zero from this byte on in the state
/// `graph`.
fn has_no_end(graph: &Graph, found: &Found) -> bool {
    let (of, has) = (&found.of, &found.crossing.has);
    let is_text = of.how == How::Text || of.how == How::InTurn && of.size == 1 && of.count > 1;
    let rest = graph.containing(of.first).map(|(id, offset)| {
        let bytes = &graph.objects[id].bytes[offset as usize..];
        &bytes[..bytes.len().min(has.end.saturating_sub(of.first) as usize)]
    });
    let is_full = rest.is_some_and(|it| !it.is_empty() && !it.contains(&0));
    is_text && has.contains(&of.first) && found.crossing.element == 1 && is_full
}
