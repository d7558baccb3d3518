//! What leads from one call of a recursion to the next: the memory from which a parameter that
//! repeats is read, who wrote it, and the conditions that lead to the next call.

use std::collections::HashSet;

use ddfuzz_triage::memory::Memory;

use super::instructions::{Executed, Value, is_clobbered};
use super::process::{Stop, by_number};
use super::recorded::Recorded;
use super::recursion::{Recursion, SEEN, Seen};
use super::run::{Next, Pace, Run};
use super::sources::inputs;
use super::watchdog::TimeLimit;
use super::writer::Writer;
use super::{Ending, Engine, EngineError, Side};
use crate::dwarf::frames::{REGISTERS, STACK_POINTER};
use crate::graph::Place;

/// Largest number of instructions that are recorded of a recursion.
const MOST_STEPS: usize = 60_000;
/// Largest number of computations through which a parameter is followed back.
const COMPUTED: usize = 4;
/// Largest number of places through which a parameter is followed back.
const PLACES: usize = 200;
/// Number of places that the processor can watch at once.
const WATCHED: usize = 4;
/// Largest number of writes to watched places.
const MOST_WRITES: usize = 5_000;
/// Largest number of conditions that are decided otherwise, each in a run of its own.
const TRIED: usize = 6;
/// Largest number of conditions that are told.
const TOLD: usize = 3;
/// A run that is stopped at the calls of a recursion may take this many times as long as a test.
const STOPPED: u32 = 4;

/// A place in memory from which a parameter is read, and by which a call of the recursion so leads
/// to the next one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Slot {
    address: u64,
    size: u64,
    /// The place as C would write it in that call.
    pub name: String,
    /// Whether the place is a field of the record to which that parameter points.
    pub is_of_parameter: bool,
}

/// The last write to the places by which the calls of a recursion lead back to an earlier one.
#[derive(Clone, Debug)]
pub(crate) struct ClosingWrite {
    /// Index of the place among those of the cycle.
    pub slot: usize,
    /// The writing statement with the calls that led to it.
    pub writer: Writer,
    /// Whether the run does not fail when the place keeps its value from before.
    pub is_averted: bool,
}

/// A write that has changed one of the watched places.
#[derive(PartialEq, Eq)]
struct Write {
    /// Number of the write in the run.
    number: usize,
    /// Index of the place.
    slot: usize,
    /// The content of the place before.
    before: Vec<u8>,
}

/// The instructions of a run from the first statement of a call of the recursion on.
pub(crate) struct Rounds {
    recorded: Recorded,
    /// Number of the call with which the recording begins.
    from: usize,
    /// Numbers of instructions up to the first statements of the next calls.
    ends: Vec<usize>,
}

/// Returns the places in memory, outside of the stack, from which the value in the place `value`
/// was made: all with address and size. `executed` ends where the place has the value. Pointers and
/// indices by which they were read are not followed.
fn sources(executed: &[Executed], value: Value, is_stack: impl Fn(u64) -> bool) -> Vec<(u64, u64)> {
    let mut found = Vec::new();
    let mut rest = vec![(executed.len(), value, 0)];
    let mut known = HashSet::new();
    while let Some((before, value, depth)) = rest.pop() {
        if known.len() > PLACES || depth > COMPUTED || !known.insert((before, value)) {
            continue;
        }
        let writes = |it: &Executed| {
            let is_lost = |register| it.is_library_call() && is_clobbered(register);
            it.is_write_to(value) || matches!(value, Value::Register(it) if is_lost(it))
        };
        let Some(by) = executed[..before].iter().rposition(writes) else {
            if let Value::Memory(address, size) = value
                && !is_stack(address)
            {
                found.push((address, size));
            }
            continue;
        };
        let it = &executed[by];
        let depth = depth + usize::from(it.copied(value).is_none());
        let next = inputs(it, value).into_iter();
        rest.extend(
            next.filter(|next| !it.is_of_frame(*next))
                .map(|next| (by, next, depth)),
        );
    }
    found
}

impl Engine {
    /// Records the instructions of the failing run from the first statement of the call `from` of
    /// the recursion on, up to that of the call `count` calls later; `None` where they are too many,
    /// or the calls were not seen.
    ///
    /// # Errors
    /// When the run cannot be made.
    pub(crate) fn rounds(
        &mut self,
        recursion: &Recursion,
        (from, count): (usize, usize),
    ) -> Result<Option<Rounds>, EngineError> {
        let calls = &recursion.calls;
        let Some(stop) = recursion.stops.get(from).filter(|_| from + count < SEEN) else {
            return Ok(None);
        };
        let Some(mut run) = self.follow(calls, Some(*stop), |_, _, _, _| {})? else {
            return Ok(None);
        };
        let begins = self.first_statement(calls.entry());
        let (mut recorded, mut ends) = (Recorded::default(), Vec::new());
        let mut registers = by_number(&run.process.registers()?);
        let mut next_cfa = None;
        while recorded.executed.len() < MOST_STEPS {
            self.check_time()?;
            let [pc, stack] = [REGISTERS - 1, usize::from(STACK_POINTER)].map(|it| registers[it]);
            let next = calls.cfa(from + ends.len() + 1);
            if pc == calls.entry() {
                next_cfa = Some(stack + 8);
            }
            if pc == begins && next_cfa.take() == Some(next) {
                ends.push(recorded.executed.len());
                if ends.len() == count {
                    return Ok(Some(Rounds {
                        recorded,
                        from,
                        ends,
                    }));
                }
            }
            let code = run.process.bytes(pc, 15);
            let Some(executed) = Executed::new(&code, registers) else {
                return Ok(None);
            };
            recorded.executed.push(executed);
            match self.step_once(&mut run, &mut recorded)? {
                Some(next) => registers = next,
                None => return Ok(None),
            }
        }
        Ok(None)
    }

    /// Returns the places in memory from which the parameter `name` is read for each call of the
    /// recorded rounds; nothing where one of them is not read from one place outside of the stack.
    ///
    /// # Errors
    /// When the runs cannot be made.
    pub(crate) fn slots(
        &mut self,
        recursion: &Recursion,
        rounds: &Rounds,
        name: &str,
    ) -> Result<Vec<Slot>, EngineError> {
        let top = recursion.calls.cfa(0);
        let deepest = recursion.calls.all.last().map_or(0, |it| it.cfa);
        // What is above the recursion is on the stack as well, unless it is far away.
        let is_stack = |at: u64| (deepest.saturating_sub(1 << 16)..top + (16 << 20)).contains(&at);
        let mut found = Vec::new();
        for (at, end) in rounds.ends.iter().enumerate() {
            let next = recursion.first.get(rounds.from + at + 1);
            let seen = next.and_then(|it| it.iter().find(|it| it.0 == name));
            let Some((_, seen)) = seen else {
                return Ok(Vec::new());
            };
            let value = match seen.place {
                Place::Memory(address) => Value::Memory(address, seen.size),
                Place::Register(number) => Value::Register(usize::from(number)),
            };
            let places = sources(&rounds.recorded.executed[..*end], value, is_stack);
            let [(address, size)] = places[..] else {
                return Ok(Vec::new());
            };
            let call = &recursion.first[rounds.from + at];
            let is_it = |it: &&(String, Seen)| it.1.place == Place::Memory(address);
            let mut fields = call.iter().filter(|it| it.1.by.as_deref() == Some(name));
            let field = fields.find(is_it).map(|it| it.0.clone());
            let is_of_parameter = field.is_some();
            let named = match field {
                Some(field) => Some(field),
                None => self.slot_name(recursion, rounds.from + at, address)?,
            };
            // What one watchpoint covers.
            let is_watchable = [1, 2, 4, 8].contains(&size) && address % size == 0;
            let Some(name) = named.filter(|_| is_watchable) else {
                return Ok(Vec::new());
            };
            found.push(Slot {
                address,
                size,
                name,
                is_of_parameter,
            });
        }
        Ok(found)
    }

    /// Returns the name of the place `address` in the call `number` of the recursion; `None` where
    /// no variable leads to it.
    fn slot_name(
        &mut self,
        recursion: &Recursion,
        number: usize,
        address: u64,
    ) -> Result<Option<String>, EngineError> {
        let Some(stop) = recursion.stops.get(number) else {
            return Ok(None);
        };
        let found = self.follow(&recursion.calls, Some(*stop), |_, _, _, _| {})?;
        let Some(mut run) = found else {
            return Ok(None);
        };
        let graph = self.capture(&mut run)?.graph;
        let Some((object, offset)) = graph.containing(address) else {
            return Ok(None);
        };
        let mut leaves = graph.objects[object].leaves.iter();
        let leaf = leaves.find(|it| (it.offset..it.offset + it.size.max(1)).contains(&offset));
        Ok(leaf.map(|leaf| graph.name_of(object, leaf, offset)))
    }

    /// Finds the last write of the failing run to the places `slots`, and whether the run still
    /// fails when the place keeps its value: `averts` tells of the end of a run whether it does not
    /// fail. `None` where no statement of the program has made it, or more places would have to be
    /// watched than the processor can.
    ///
    /// # Errors
    /// When the runs cannot be made.
    pub(crate) fn closing_write(
        &mut self,
        slots: &[Slot],
        limit: TimeLimit,
        averts: impl Fn(&Ending) -> bool,
    ) -> Result<Option<ClosingWrite>, EngineError> {
        let mut distinct: Vec<&Slot> = Vec::new();
        for slot in slots {
            if !distinct.iter().any(|it| it.address == slot.address) {
                distinct.push(slot);
            }
        }
        if distinct.len() > WATCHED {
            return Ok(None);
        }
        let mut last = None;
        self.watched_run(&distinct, None, |engine, run, write, by_kernel| {
            let address = distinct[write.slot].address;
            let writer = engine.describe(&mut run.process, Side::Failing, address, by_kernel)?;
            last = Some((write, writer.filter(|_| !by_kernel)));
            Ok(())
        })?;
        let Some((last, Some(writer))) = last else {
            return Ok(None);
        };
        self.changed_runs += 1;
        let mut is_undone = false;
        let ending = self.watched_run(&distinct, Some(limit), |_, run, write, _| {
            if write.number == last.number {
                is_undone = write == last;
                run.process
                    .write(distinct[last.slot].address, &last.before)?;
            }
            Ok(())
        })?;
        let address = distinct[last.slot].address;
        Ok(Some(ClosingWrite {
            slot: slots
                .iter()
                .position(|it| it.address == address)
                .unwrap_or(0),
            writer,
            is_averted: is_undone && ending.is_some_and(|it| averts(&it)),
        }))
    }

    /// Makes the failing run with watchpoints on `slots`, calls `tell` after each write that has
    /// changed one of them (the last argument: by the kernel), and returns how the run ends; `None`
    /// if there are too many writes. It may take `limit`, if that is given.
    fn watched_run(
        &mut self,
        slots: &[&Slot],
        limit: Option<TimeLimit>,
        mut tell: impl FnMut(&mut Engine, &mut Run, Write, bool) -> Result<(), EngineError>,
    ) -> Result<Option<Ending>, EngineError> {
        let mut run = self.start(Side::Failing)?;
        for (number, slot) in slots.iter().enumerate() {
            run.process.watch(number, slot.address, slot.size)?;
        }
        let _limit = limit.map(|it| run.process.limit(it.times(STOPPED)));
        let read = |run: &mut Run| -> Vec<Vec<u8>> {
            let all = slots.iter();
            all.map(|it| run.process.bytes(it.address, it.size as usize))
                .collect()
        };
        let (mut content, mut number) = (read(&mut run), 0);
        while number < MOST_WRITES {
            self.check_time()?;
            let by_kernel = match self.resume(&mut run.process, Pace::SystemCalls)? {
                Next::Ended(ending) => return Ok(Some(*ending)),
                Next::Breakpoint(_) => continue,
                Next::Other(it) => it == Stop::SystemCall,
            };
            let now = read(&mut run);
            for slot in 0..slots.len() {
                let before = content[slot].clone();
                // What has just been mapped was written by nobody.
                if before != now[slot] && before.len() == now[slot].len() {
                    number += 1;
                    let write = Write {
                        number,
                        slot,
                        before,
                    };
                    tell(self, &mut run, write, by_kernel)?;
                }
            }
            // What was undone is no write.
            content = read(&mut run);
        }
        Ok(None)
    }

    /// Returns the conditions in the first of the recorded rounds without which the recursion would
    /// not have gone on: with the other decision in that call, the run does not fail, as `averts`
    /// tells of its end. The nearest to the next call come first.
    ///
    /// # Errors
    /// When the runs cannot be made.
    pub(crate) fn deciding(
        &mut self,
        recursion: &Recursion,
        rounds: &Rounds,
        limit: TimeLimit,
        averts: impl Fn(&Ending) -> bool,
    ) -> Result<Vec<u64>, EngineError> {
        let executed = &rounds.recorded.executed[..rounds.ends[0]];
        let functions: HashSet<u64> = recursion.calls.all.iter().map(|it| it.function).collect();
        let stack = |it: &Executed| it.registers[usize::from(STACK_POINTER)];
        let mut highest = 0;
        let mut conditions: Vec<usize> = Vec::new();
        for at in (0..executed.len().saturating_sub(1)).rev() {
            let it = &executed[at];
            // What has returned since does not lead to the next call.
            highest = highest.max(stack(it));
            let function = self.info.function(it.pc().wrapping_sub(self.bias));
            let function = function.map(|it| it.ranges[0].start.wrapping_add(self.bias));
            let is_new = !conditions
                .iter()
                .any(|other| executed[*other].pc() == it.pc());
            let is_of = function.is_some_and(|it| functions.contains(&it));
            if it.is_condition() && stack(it) == highest && is_new && is_of && self.is_user(it.pc())
            {
                conditions.push(at);
            }
        }
        let mut found = Vec::new();
        for at in conditions.into_iter().take(TRIED) {
            if found.len() >= TOLD || self.facts_until.is_over() {
                break;
            }
            let ending = self.decided_otherwise(recursion, rounds, at, limit)?;
            if ending.is_some_and(|it| averts(&it)) {
                found.push(executed[at].pc());
            }
        }
        Ok(found)
    }

    /// Makes the failing run again in which the recorded conditional jump `at` goes the other way,
    /// and returns how it ends; `None` if it does not come to the jump.
    fn decided_otherwise(
        &mut self,
        recursion: &Recursion,
        rounds: &Rounds,
        at: usize,
        limit: TimeLimit,
    ) -> Result<Option<Ending>, EngineError> {
        let executed = &rounds.recorded.executed;
        let stop = recursion.stops[rounds.from];
        let Some(mut run) = self.follow(&recursion.calls, Some(stop), |_, _, _, _| {})? else {
            return Ok(None);
        };
        if !self.go_to(&mut run, &executed[..=at])? {
            return Ok(None);
        }
        let mut registers = run.process.registers()?;
        if registers.rip != executed[at].pc() {
            return Ok(None);
        }
        self.changed_runs += 1;
        registers.rip = executed[at].other_way(executed[at + 1].pc());
        run.process.set_registers(registers)?;
        let _limit = run.process.limit(limit.times(STOPPED));
        loop {
            self.check_time()?;
            if let Next::Ended(ending) = self.resume(&mut run.process, Pace::Free)? {
                return Ok(Some(*ending));
            }
        }
    }
}
