//! Finds a read of the failing run outside of the array to which its address belongs, or of a text
//! that has no terminating zero, and tests whether the run fails by it.

use std::collections::HashSet;

use ddfuzz_triage::memory::Memory;

use super::bounds::{Accesses, Found, Overrun, TRIED, crossed};
use super::instructions::Executed;
use super::pointers::{How, Written};
use super::process::by_number;
use super::recorded::{ALL_ARGUMENTS, Recorded};
use super::run::{Next, Pace};
use super::watchdog::TimeLimit;
use super::writer::Watched;
use super::{Ending, Engine, EngineError, Side, if_supported};
use crate::graph::Graph;

/// Largest number of times that a run is stopped at one instruction.
const MOST_STOPS: usize = 5_000;
/// Factor of the time limit of a run that is stopped at each execution of one instruction, compared
/// with other tests.
const STOPPED: u32 = 4;

/// What a run finds in place of what it reads outside of an array.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Instead {
    /// The array's element nearest to the read.
    Nearest,
    /// Zeros.
    Zero,
    /// A zero at the end of the array, as a text has it.
    Terminator,
}

/// A read of the failing run outside of an array. With something else there, the run does not fail.
#[derive(Clone, Debug)]
pub(crate) struct Overread {
    /// The read, in the terms of a write that reaches out of its variable.
    pub read: Overrun,
    /// What is there in the run that does not fail.
    pub instead: Instead,
    /// If the array has a text without a terminating zero: addresses of the statement that has
    /// written its last byte, and of the calls that led to it, innermost first. Empty where that
    /// is not known.
    pub filled: Vec<u64>,
}

impl Engine {
    /// Returns the addresses of the program's own instructions whose reads the failure depends on;
    /// empty if the failing run, which ends as `ending` says, was not recorded.
    pub(super) fn reading(&mut self, ending: &Ending) -> HashSet<u64> {
        let Some(slice) = self.failure_slice(ending) else {
            return HashSet::new();
        };
        let executed = &slice.recorded.executed;
        let last = executed.iter().rposition(|it| self.is_user(it.pc()));
        let all = slice.order.iter().map(|it| it.at).chain(last);
        let reads = all.map(|at| &executed[at]).filter(|it| {
            let is_read = it.texts != 0 || !it.is_library_call() && it.read().is_some();
            is_read && !it.is_pop()
        });
        let pcs: HashSet<u64> = reads.map(Executed::pc).collect();
        pcs.into_iter().filter(|pc| self.is_user(*pc)).collect()
    }

    /// Finds a read among `accesses` of the failing run, outside of the array to which its address
    /// belongs, without which the run does not fail (`averts` tells this from the end of a run): a
    /// text without a terminating zero, or an access by an instruction that stays inside at other
    /// times. With `is_text`, only texts are looked for. `None` if there is no such read. A changed
    /// run may take `limit`.
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
        let mut tried = HashSet::new();
        for it in all.iter().filter(|it| it.is_read) {
            if tried.len() >= TRIED || self.facts_until.is_over() {
                break;
            }
            if tried.contains(&it.pc) || crossed(graph, self, it).is_none() {
                continue;
            }
            tried.insert(it.pc);
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
                let at = at_of(&found);
                let end = found.crossing.has.end;
                let read = self.told(whole, graph, all, found)?;
                if !is_unterminated && !read.is_unusual {
                    break;
                }
                let filled = match is_unterminated {
                    true => self.last_writer(whole, at, end - 1)?,
                    false => Vec::new(),
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

    /// Returns the addresses of the statement that wrote the byte at `address` last before the
    /// recorded instruction `at`, and of the calls that led to it; empty if none is known.
    fn last_writer(
        &mut self,
        whole: &Recorded,
        at: usize,
        address: u64,
    ) -> Result<Vec<u64>, EngineError> {
        let Some(point) = whole.passed(at).map(|it| whole.points[it].1) else {
            return Ok(Vec::new());
        };
        let watched = Watched {
            address,
            size: 1,
            frame: None,
        };
        let found = self.last_writes(Side::Failing, None, point, watched);
        let found = if_supported(found.map(Some))?.and_then(|it| it.any);
        Ok(found.map_or_else(Vec::new, |it| it.writer.calls))
    }

    /// Makes the failing run with other values outside of the array of the read `found`, each time
    /// that its instruction reads there; a terminator stays. Returns how the run ends.
    fn with_other_value(
        &mut self,
        whole: &Recorded,
        (found, instead): (&Found, Instead),
        limit: TimeLimit,
    ) -> Result<Ending, EngineError> {
        self.changed_runs += 1;
        let executed = &whole.executed[found.of.at];
        let (has, beyond) = (&found.crossing.has, &found.crossing.beyond);
        let mut run = self.start(Side::Failing)?;
        run.process.set_breakpoint(found.of.pc)?;
        let _limit = run.process.limit(limit.times(STOPPED));
        let mut stops = 0;
        loop {
            self.check_time()?;
            match self.resume(&mut run.process, Pace::Free)? {
                Next::Ended(ending) => return Ok(*ending),
                Next::Other(_) => continue,
                Next::Breakpoint(registers) => {
                    let now = Executed::again(executed.instruction, by_number(&registers));
                    stops += 1;
                    let read = match found.of.how {
                        How::Text => {
                            let mut arguments = ALL_ARGUMENTS.iter();
                            let is_it = |it: &usize| now.registers[*it] == found.of.first;
                            arguments.any(is_it).then_some((found.of.first, 1))
                        }
                        _ => now.read(),
                    };
                    let is_first = read.is_some_and(|it| it.0 == found.of.first);
                    let read = read.map(|(at, size)| at..at.saturating_add(size));
                    let read = read.filter(|it| it.start < beyond.end && beyond.start < it.end);
                    if instead == Instead::Terminator && is_first {
                        run.process.write(has.end - 1, &[0])?;
                        run.process.remove_breakpoint(found.of.pc)?;
                        continue;
                    }
                    let Some(read) = read.filter(|_| instead != Instead::Terminator) else {
                        run.process.step_over_here()?;
                        if stops >= MOST_STOPS {
                            run.process.remove_breakpoint(found.of.pc)?;
                        }
                        continue;
                    };
                    let size = (read.end - read.start) as usize;
                    let nearest = match read.start < has.start {
                        true => has.start,
                        false => has.end.saturating_sub(read.end - read.start),
                    };
                    let other = match instead {
                        Instead::Nearest => run.process.bytes(nearest, size),
                        _ => vec![0; size],
                    };
                    let before = run.process.bytes(read.start, size);
                    run.process.write(read.start, &other)?;
                    run.process.step_over_here()?;
                    run.process.write(read.start, &before)?;
                }
            }
        }
    }

    /// Reads the state of the failing run at the statement that makes the recorded access `it`, and
    /// returns the part of it that crosses the bounds of its variable, with the state; `None` if
    /// none does.
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

/// Returns the index in the recording of the access that has left its variable.
fn at_of(found: &Found) -> usize {
    match found.of.how {
        How::Anywhere => {
            let is_behind = found.written.end > found.crossing.has.end;
            found.of.extremes[usize::from(is_behind)]
        }
        _ => found.of.at,
    }
}

/// Returns true if the access `found` has read a text from its array, one byte after another, and
/// the array has no zero from there on in the state `graph`.
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
