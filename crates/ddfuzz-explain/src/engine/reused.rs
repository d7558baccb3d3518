//! Finds a field that still has its value from an earlier use of its record: a function has set the
//! other fields anew since, and not this one, as where an element of a pool is used again.

use ddfuzz_triage::memory::Memory;

use super::process::Stop;
use super::run::{Next, Pace, Run};
use super::watchdog::TimeLimit;
use super::{Ending, Engine, EngineError, Point, Side, if_supported};
use crate::crossing::{is_record, parts_at};

/// Largest number of times that a run is stopped: by writes to a record, by system calls, and at
/// the statement of the last point.
const MOST_STOPS: usize = 5_000;
/// Largest number of fields of a record that are watched beside the examined one: the processor has
/// four watchpoints, and one of them is for the examined field.
const FIELDS: usize = 3;
/// Smallest number of other fields of a record for the record to be examined. A function must set
/// all that are watched for a new use of the record.
const LEAST: usize = 2;

/// A field of a record that still has its value from an earlier use of the record, for which the
/// memory was used before.
pub(crate) struct Reused {
    /// Name of the field, as C would write it, such as `cell->next`.
    pub name: String,
    /// Addresses of the statement that was the last to set one of the other fields for the new use,
    /// and of the calls that led to this statement, innermost first.
    pub beside: Vec<u64>,
}

/// The writes that one call of a function has made to the watched fields of a record, except for
/// the examined field. If the examined field is written in between, the writes before and after
/// that are two sets.
struct Set {
    /// Addresses of the statement that made the last write of the set, and of the calls that led to
    /// this statement, innermost first.
    calls: Vec<u64>,
    /// The watched fields that the call has set, as bits in the order of the watchpoints. The
    /// lowest bit is for the examined field, and always 0.
    fields: u64,
    /// Number of the last write of the set (from 1) among all writes to watched fields, the
    /// examined one included, from the beginning of the run on.
    nth: usize,
}

impl Engine {
    /// Returns the name of the field at `memory` (address and size in bytes), and the calls that set
    /// the fields beside it, if the failing run reads the field after the point `to` with a value
    /// from an earlier use of its record. Such a field was set after a function had set the fields
    /// beside it, and the same function has set these again since then, but not this one. It is
    /// confirmed by a run with zero in the field, which may take `limit` and must not fail; `averts`
    /// tells this from how the run ends. `None` if that run fails, or if the field was set since
    /// the function's last call.
    ///
    /// # Errors
    /// When the runs cannot be made.
    pub(crate) fn reused_variable(
        &mut self,
        (memory, to): ((u64, u64), Point),
        limit: TimeLimit,
        averts: impl Fn(&Ending) -> bool,
    ) -> Result<Option<Reused>, EngineError> {
        let fits = [1, 2, 4, 8].contains(&memory.1) && memory.0.is_multiple_of(memory.1);
        let mut run = self.start(Side::Failing)?;
        self.run_to(&mut run, to)?;
        let graph = self.capture(&mut run)?.graph;
        drop(run);
        let Some((id, offset)) = graph.containing(memory.0).filter(|_| fits) else {
            return Ok(None);
        };
        let object = &graph.objects[id];
        let types = &self.info.types;
        let parts = parts_at(types, (object.of, object.bytes.len() as u64), offset);
        // A variable is one record for the whole run.
        let is_one = |path: &str| object.is_variable() && path.is_empty();
        let record = parts.iter().rfind(|it| is_record(types, it));
        let leaf = object.leaves.iter().find(|it| it.offset == offset);
        let Some(leaf) = leaf.filter(|_| record.is_some_and(|it| !is_one(&it.path))) else {
            return Ok(None);
        };
        let name = self.name_by_pointer(&graph, (id, offset), leaf);
        let name = name.unwrap_or_else(|| graph.name_of(id, leaf, offset));
        let mut fields = self.fields_beside(&graph, memory);
        fields.truncate(FIELDS);
        if fields.len() < LEAST {
            return Ok(None);
        }
        fields.insert(0, memory);
        let Some(set) = if_supported(self.set_anew(&fields, to))? else {
            return Ok(None);
        };
        let ending = self.with_zero_since(&fields, set.nth, limit)?;
        Ok(averts(&ending).then_some(Reused {
            name,
            beside: set.calls,
        }))
    }

    /// Starts the failing run and stops it at the program's first instruction, with watchpoints on
    /// `fields` (address and size in bytes of each); `None` if this instruction is not known.
    fn watching_fields(&mut self, fields: &[(u64, u64)]) -> Result<Option<Run>, EngineError> {
        let run = self.at_entry(Side::Failing)?;
        if let Some(run) = &run {
            for (slot, (at, size)) in fields.iter().enumerate() {
                run.process.watch(slot, *at, *size)?;
            }
        }
        Ok(run)
    }

    /// Makes the failing run up to the point `to` with watchpoints on `fields`, of which the first
    /// is the examined one. Returns the first set of writes, after the last write to the examined
    /// field, in which a function sets all other fields; the same function must also have set all
    /// of them before that write. `None` if there is no such set, or if the run does not come to
    /// `to`.
    fn set_anew(&mut self, fields: &[(u64, u64)], to: Point) -> Result<Option<Set>, EngineError> {
        let Some(mut run) = self.watching_fields(fields)? else {
            return Ok(None);
        };
        run.process.set_breakpoint(to.pc)?;
        let all = (1 << fields.len()) - 2;
        let (address, size) = fields[0];
        let mut value = run.process.bytes(address, size as usize);
        let (mut before, mut after): (Vec<Set>, Vec<Set>) = (Vec::new(), Vec::new());
        let (mut nth, mut left) = (0, to.nth);
        for _ in 0..MOST_STOPS {
            self.check_time()?;
            let next = self.resume(&mut run.process, Pace::SystemCalls)?;
            let is_write = match &next {
                Next::Ended(_) => return Ok(None),
                Next::Other(stop) => *stop == Stop::Trap,
                Next::Breakpoint(registers) => {
                    left -= 1;
                    if left == 0 {
                        break;
                    }
                    run.process.step_over_writes(registers.rip)?
                }
            };
            let now = run.process.bytes(address, size as usize);
            let slots = match is_write {
                true => run.process.written_slots()?,
                false => 0,
            };
            nth += usize::from(is_write);
            // The kernel's writes are seen by the value.
            if now != value && now.len() == value.len() || slots & 1 != 0 {
                before.append(&mut after);
            }
            value = now;
            if slots & all == 0 {
                continue;
            }
            let written = fields[slots.trailing_zeros().max(1) as usize].0;
            let writer = self.describe(&mut run.process, Side::Failing, written, false)?;
            let Some(calls) = writer.map(|it| it.calls).filter(|it| !it.is_empty()) else {
                continue;
            };
            let set = Set {
                calls,
                fields: slots & all,
                nth,
            };
            self.add(&mut after, set);
        }
        let is_whole = |it: &Set| it.fields == all;
        let function = |it: &Set| self.function(it.calls[0]);
        let found = after.into_iter().filter(is_whole).find(|it| {
            let mut whole = before.iter().filter(|it| is_whole(it));
            whole.any(|other| function(it) == function(other))
        });
        // What is not reached says nothing.
        Ok(found.filter(|_| left == 0))
    }

    /// Adds the set of writes `set` to `all`: merges it with the last set if the same call of a
    /// function has made both, else appends it.
    fn add(&self, all: &mut Vec<Set>, set: Set) {
        match all.last_mut().filter(|it| self.is_one_call(it, &set)) {
            Some(last) => {
                *last = Set {
                    fields: last.fields | set.fields,
                    ..set
                }
            }
            None => all.push(set),
        }
    }

    /// Returns true if the sets of writes `one` and `other` were made by the same function, with
    /// the same calls leading to it.
    fn is_one_call(&self, one: &Set, other: &Set) -> bool {
        let function = |it: &Set| self.function(it.calls[0]);
        one.calls[1..] == other.calls[1..] && function(one) == function(other)
    }

    /// Makes the failing run, which may take `limit`, and returns how it ends. All of `fields` are
    /// watched; after the write to any of them that has the number `nth` (from 1), zero is put into
    /// the first one.
    fn with_zero_since(
        &mut self,
        fields: &[(u64, u64)],
        nth: usize,
        limit: TimeLimit,
    ) -> Result<Ending, EngineError> {
        self.changed_runs += 1;
        let unsteady = EngineError::Unsupported(super::Unsupported::Unsteady);
        let mut run = self.watching_fields(fields)?.ok_or(unsteady)?;
        let _limit = run.process.limit(limit);
        let (mut writes, mut is_set) = (0, false);
        loop {
            self.check_time()?;
            match self.resume(&mut run.process, Pace::Free)? {
                Next::Ended(ending) => return Ok(*ending),
                Next::Other(stop) => writes += usize::from(stop == Stop::Trap),
                Next::Breakpoint(_) => {}
            }
            if writes == nth && !is_set {
                let (address, size) = fields[0];
                run.process.write(address, &vec![0; size as usize])?;
                is_set = true;
            }
        }
    }
}
