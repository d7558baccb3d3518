//! The recursion by which a run overflows its stack: its calls, from the outermost one to the
//! crash, and the values of the parameters in them.

use std::collections::{BTreeMap, HashMap, HashSet};

use ddfuzz_triage::memory::Memory;
use libc::user_regs_struct;

use super::instructions::Value;
use super::origin;
use super::process::{Process, by_number};
use super::run::{Next, Pace, Run};
use super::state::Reading;
use super::watchdog::TimeLimit;
use super::writer::{Watched, watch};
use super::{Ending, Engine, EngineError, Point, Side, Unsupported};
use crate::dwarf::frames::Frame;
use crate::graph::{Origin, Place};
use crate::types::{Encoding, Shape, TypeId, integer};
use crate::unfold::Variable;

/// Number of frames at the top of the stack by which the functions of the recursion are found.
const INNERMOST: usize = 256;
/// Largest number of frames of an overflowing stack that are read.
const MOST_FRAMES: usize = 1 << 20;
/// Smallest number of calls of a function that make a recursion.
const LEAST_CALLS: usize = 100;
/// Number of calls at the beginning of the recursion, and at its end, whose parameters are read.
pub(super) const SEEN: usize = 64;
/// Largest number of instructions before the first statement of a function.
const PROLOGUE: usize = 40;
/// Largest number of times that a run is stopped to find the calls of the recursion.
const MOST_STOPS: u64 = 60_000;
/// Size of the larger stack on which the run is tried, in bytes: the kernel leaves 128 MiB for it.
const LARGER: u64 = 120 << 20;
/// Number of bytes below the stack pointer at which a system call of the process finds its arguments.
const BELOW: u64 = 1024;
/// The larger stack must be this many times as large as the usual one to say anything.
const TIMES: u64 = 4;
/// Largest size of a record whose fields are read, in bytes.
const RECORD: u64 = 1 << 12;
/// Largest number of fields that are read of a record.
const FIELDS: usize = 48;
/// Largest number of bytes of a text by which a value is shown.
const TEXT: usize = 16;

/// A call on the stack of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Call {
    /// First address of the called function.
    pub function: u64,
    /// Address in the function at which it calls the next one, or has crashed.
    pub code: u64,
    /// Canonical frame address of the call.
    pub cfa: u64,
    /// Return address of the call.
    back: u64,
}

/// The calls of a recursion on a stack that overflows, the outermost one first.
pub(super) struct Calls {
    /// All calls of the functions of the recursion.
    pub all: Vec<Call>,
    /// Indices in `all` of the calls of the function that is called most.
    pub heads: Vec<usize>,
}

/// A value of a parameter, or of a field of the record to which a parameter points, in one call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Seen {
    /// The number, or the address of a pointer.
    pub value: i128,
    /// The value as text.
    pub shown: String,
    /// Where the value is in memory, or in a register.
    pub place: Place,
    /// Size of the value in bytes.
    pub size: u64,
    /// Name of the pointer by which the value was reached; `None` for a parameter.
    pub by: Option<String>,
}

/// The values of a call: of each parameter, and of each field of the records to which parameters
/// point, by their names.
pub(crate) type Values = Vec<(String, Seen)>;

/// The recursion by which a run overflows its stack.
pub(crate) struct Recursion {
    pub(super) calls: Calls,
    /// Addresses of the calls in one round of the recursion, the outermost one first.
    pub round: Vec<u64>,
    /// Number of calls of the first function of a round on the stack.
    pub depth: u64,
    /// Number of bytes of the stack that the recursion takes.
    pub bytes: u64,
    /// Values in the first calls of the first function, in the order of time.
    pub first: Vec<Values>,
    /// Numbers of the stops of [`Engine::follow`] at which these calls were seen.
    pub(super) stops: Vec<u64>,
    /// Values in the last calls; empty where they were not seen.
    pub last: Vec<Values>,
    /// Number of the first of these calls.
    pub last_from: usize,
    /// How often the run had come to the first statement of the first function when the recursion
    /// began, that time included; 0 where that was not counted.
    begins: u64,
}

/// The stack of a stopped process, read at once.
struct Stack<'a> {
    start: u64,
    bytes: Vec<u8>,
    process: &'a mut Process,
}

impl Memory for Stack<'_> {
    fn read(&mut self, address: u64, buffer: &mut [u8]) -> usize {
        let offset = address.wrapping_sub(self.start);
        let end = offset.saturating_add(buffer.len() as u64);
        match end <= self.bytes.len() as u64 {
            true => {
                buffer.copy_from_slice(&self.bytes[offset as usize..end as usize]);
                buffer.len()
            }
            false => self.process.read(address, buffer),
        }
    }
}

/// Returns the calls of a recursion from all calls on a stack, which are the innermost first;
/// `None` where no function calls itself often. The recursion consists of the functions that recur
/// near the crash, and reaches as far out as only these are on the stack.
fn recurring(stack: &[Call]) -> Option<Calls> {
    let mut counts: HashMap<u64, usize> = HashMap::new();
    for call in &stack[..stack.len().min(INNERMOST)] {
        *counts.entry(call.function).or_default() += 1;
    }
    let recurs = |it: &&Call| counts.get(&it.function).is_some_and(|count| *count > 2);
    let inner = stack.iter().position(|it| recurs(&it))?;
    let mut all: Vec<Call> = stack[inner..].iter().take_while(recurs).copied().collect();
    all.reverse();
    let most = counts.values().max()?;
    let head = all.iter().find(|it| counts[&it.function] + 1 >= *most)?;
    let head = head.function;
    let heads = (0..all.len()).filter(|at| all[*at].function == head);
    let heads: Vec<usize> = heads.collect();
    (heads.len() >= LEAST_CALLS).then_some(Calls { all, heads })
}

impl Calls {
    /// Returns the addresses of the calls in the round that the recursion makes most often.
    fn round(&self) -> Vec<u64> {
        let mut counts: BTreeMap<Vec<u64>, usize> = BTreeMap::new();
        for pair in self.heads.windows(2) {
            let round = self.all[pair[0]..pair[1]].iter().map(|it| it.code);
            *counts.entry(round.collect()).or_default() += 1;
        }
        let most = counts.into_iter().max_by_key(|it| it.1);
        most.map_or_else(Vec::new, |it| it.0)
    }

    /// Returns the number, among the calls of the most called function, of the one with this frame.
    fn number(&self, cfa: u64) -> Option<usize> {
        // The stack grows downwards.
        let heads = &self.heads;
        let at = heads.partition_point(|at| self.all[*at].cfa > cfa);
        heads.get(at).filter(|it| self.all[**it].cfa == cfa)?;
        Some(at)
    }

    /// Returns the canonical frame address of the call with this number of the most called function.
    pub(super) fn cfa(&self, number: usize) -> u64 {
        self.all[self.heads[number]].cfa
    }

    /// Returns the first address of the most called function.
    pub(super) fn entry(&self) -> u64 {
        self.all[self.heads[0]].function
    }
}

impl Engine {
    /// Finds the recursion by which the failing run overflows its stack, and reads the parameters
    /// of its first and last calls; `None` where no function calls itself, or that is not seen.
    ///
    /// # Errors
    /// When the runs cannot be made.
    pub(crate) fn overflowing_recursion(&mut self) -> Result<Option<Recursion>, EngineError> {
        let mut run = self.start(Side::Failing)?;
        while !matches!(self.resume(&mut run.process, Pace::Free)?, Next::Ended(_)) {}
        let stack = self.whole_stack(&mut run)?;
        drop(run);
        let Some(calls) = recurring(&stack) else {
            return Ok(None);
        };
        let mut first: Vec<(u64, Values)> = Vec::new();
        let (mut begins, mut is_counted) = (0, true);
        self.follow(&calls, None, |engine, run, registers, (number, stop)| {
            first.truncate(number);
            if number == 0 {
                begins = if is_counted { stop + 1 } else { 0 };
            }
            // The calls inside of the last one are not counted.
            is_counted &= number + 1 < SEEN.min(calls.heads.len() / 2);
            // What was not seen before cannot be followed.
            if first.len() == number {
                first.push((stop, engine.parameters_at(run, registers)));
            }
        })?;
        let last_from = calls.heads.len() - SEEN;
        let last = self.last_calls(&calls, last_from)?;
        let bytes = calls.cfa(0) - calls.all.last().map_or(0, |it| it.cfa);
        let (stops, first) = first.into_iter().unzip();
        Ok(Some(Recursion {
            round: calls.round(),
            depth: calls.heads.len() as u64,
            bytes,
            calls,
            first,
            stops,
            last,
            last_from,
            begins,
        }))
    }

    /// Returns the calls of the program's own functions on the stack of a stopped run, innermost
    /// first.
    fn whole_stack(&mut self, run: &mut Run) -> Result<Vec<Call>, EngineError> {
        let registers = run.process.registers()?;
        let maps = ddfuzz_triage::memory::Maps::of(run.process.pid);
        let mapping = maps.iter().find(|it| registers.rsp < it.end);
        let Some((start, end)) = mapping.map(|it| (it.start, it.end)) else {
            return Ok(Vec::new());
        };
        let bytes = run.process.bytes(start, (end - start) as usize);
        let mut memory = Stack {
            start,
            bytes,
            process: &mut run.process,
        };
        let mut frame = Frame::innermost(&by_number(&registers));
        let mut found = Vec::new();
        let mut outer = 0;
        for _ in 0..MOST_FRAMES {
            let Some(caller) = self.modules.caller(&mut frame, &mut memory) else {
                break;
            };
            if frame.cfa <= outer {
                break;
            }
            outer = frame.cfa;
            let function = self.info.function(frame.code.wrapping_sub(self.bias));
            found.extend(function.map(|function| Call {
                function: function.ranges[0].start.wrapping_add(self.bias),
                code: frame.code,
                cfa: frame.cfa,
                back: caller.pc,
            }));
            frame = caller;
        }
        Ok(found)
    }

    /// Returns the address of the first statement of a function, at which its parameters are
    /// stored.
    pub(super) fn first_statement(&self, function: u64) -> u64 {
        let behind = self.statements.partition_point(|it| *it < function);
        let first = self.statements.get(behind).copied();
        let same = |at: &u64| {
            let found = self.info.function(at.wrapping_sub(self.bias));
            found.is_some_and(|it| it.ranges[0].start.wrapping_add(self.bias) == function)
        };
        first.filter(same).unwrap_or(function)
    }

    /// Makes the failing run up to the stop with the number `until`, or to its end, and returns it.
    /// The run is stopped at the first statement of the function that is called most in the
    /// recursion; `tell` is called with the number of the call on the stack at the crash that has
    /// this frame, and the number of the stop. Of the first [`SEEN`] calls, the last ones that are
    /// told are those of the recursion. `None` if the run has ended.
    pub(super) fn follow(
        &mut self,
        calls: &Calls,
        until: Option<u64>,
        mut tell: impl FnMut(&mut Engine, &mut Run, &user_regs_struct, (usize, u64)),
    ) -> Result<Option<Run>, EngineError> {
        let seen = SEEN.min(calls.heads.len() / 2);
        let entry = calls.entry();
        let backs = calls.heads[..seen].iter().map(|at| calls.all[*at].back);
        let backs: HashSet<u64> = backs.collect();
        let mut run = self.start(Side::Failing)?;
        run.process.set_breakpoint(entry)?;
        for stop in 0..MOST_STOPS {
            self.check_time()?;
            let registers = match self.resume(&mut run.process, Pace::Free)? {
                Next::Ended(_) => return Ok(None),
                Next::Other(_) => continue,
                Next::Breakpoint(registers) => registers,
            };
            let is_entry = registers.rip == entry;
            let cfa = registers.rsp + if is_entry { 8 } else { 0 };
            let number = calls.number(cfa).filter(|it| *it < seen);
            if let Some(number) = number.filter(|_| is_entry)
                && let Some(registers) = self.run_to_first_statement(&mut run, entry)?
            {
                tell(self, &mut run, &registers, (number, stop));
            }
            if until == Some(stop) {
                run.process.remove_breakpoints()?;
                return Ok(Some(run));
            }
            run.process.step_over_here()?;
            // Only where one of the first calls returns is it none of the recursion.
            if number.is_some() && (!is_entry || number == Some(seen - 1)) {
                run.process.remove_breakpoints()?;
                let next: Vec<u64> = match is_entry {
                    true => backs.iter().copied().collect(),
                    false => vec![entry],
                };
                for address in next {
                    run.process.set_breakpoint(address)?;
                }
            }
        }
        Err(EngineError::Unsupported(Unsupported::Unsteady))
    }

    /// Lets a run, stopped at the first instruction of a function under a breakpoint, go on to the
    /// function's first statement, and returns the registers there; `None` where it does not come to it.
    fn run_to_first_statement(
        &mut self,
        run: &mut Run,
        entry: u64,
    ) -> Result<Option<user_regs_struct>, EngineError> {
        let begins = self.first_statement(entry);
        let mut registers = run.process.registers()?;
        for step in 0..PROLOGUE {
            if registers.rip == begins {
                return Ok(Some(registers));
            }
            match step {
                0 => drop(run.process.step_over(entry)?),
                _ => drop(run.process.step()?),
            }
            registers = run.process.registers()?;
        }
        Ok(None)
    }

    /// Returns the values of the parameters in the calls from the number `from` on to the crash.
    fn last_calls(&mut self, calls: &Calls, from: usize) -> Result<Vec<Values>, EngineError> {
        let entry = calls.entry();
        let mut run = self.start(Side::Failing)?;
        // The return address is the first that a call writes.
        let watched = Watched {
            address: calls.cfa(from) - 8,
            size: 8,
            frame: None,
        };
        watch(&run.process, watched)?;
        let mut found: Vec<Values> = Vec::new();
        for _ in 0..MOST_STOPS {
            self.check_time()?;
            match self.resume(&mut run.process, Pace::Free)? {
                Next::Ended(_) => return Ok(found),
                Next::Other(_) => {
                    run.process.set_breakpoint(entry)?;
                    // The processor stops after the call.
                    if run.process.registers()?.rip != entry {
                        continue;
                    }
                }
                Next::Breakpoint(_) => {}
            }
            let number = calls.number(run.process.registers()?.rsp + 8);
            let Some(at) = number.and_then(|it| it.checked_sub(from)) else {
                run.process.step_over(entry)?;
                continue;
            };
            // The last call may have crashed before.
            let Some(registers) = self.run_to_first_statement(&mut run, entry)? else {
                continue;
            };
            found.truncate(at);
            if found.len() == at {
                found.push(self.parameters_at(&mut run, &registers));
            }
            run.process.step_over_here()?;
        }
        Err(EngineError::Unsupported(Unsupported::Unsteady))
    }

    /// Finds where the value of the parameter `name` came from in the first call of the recursion;
    /// `None` where that is not known. `points` are the points of the failing run.
    ///
    /// # Errors
    /// When the runs cannot be made.
    pub(crate) fn first_value(
        &mut self,
        recursion: &Recursion,
        points: &[Point],
        name: &str,
    ) -> Result<Option<origin::Origin>, EngineError> {
        let begins = self.first_statement(recursion.calls.entry());
        let is_it = |it: &Point| (it.pc, it.nth) == (begins, recursion.begins);
        let seen = recursion.first.first();
        let seen = seen.and_then(|it| it.iter().find(|it| it.0 == name));
        let (Some(to), Some((_, seen))) = (points.iter().position(is_it), seen) else {
            return Ok(None);
        };
        // A loop may have come to the statement more often than the function was called.
        let mut run = self.start(Side::Failing)?;
        let registers = self.run_to(&mut run, points[to])?;
        if Some(&self.parameters_at(&mut run, &registers)) != recursion.first.first() {
            return Ok(None);
        }
        drop(run);
        let value = match seen.place {
            Place::Memory(address) => Value::Memory(address, seen.size),
            Place::Register(number) => Value::Register(usize::from(number)),
        };
        self.value_history(points, to, value)
    }

    /// Makes the failing run with a stack of [`LARGER`] bytes, or as many as it may have, and returns
    /// how it ends, with the size of that stack in bytes; `None` where the stack cannot be larger.
    ///
    /// # Errors
    /// When the run cannot be made.
    pub(crate) fn with_larger_stack(
        &mut self,
        limit: TimeLimit,
    ) -> Result<Option<(Ending, u64)>, EngineError> {
        let (Some(mut run), Some(instruction)) = (self.at_entry(Side::Failing)?, self.system_call)
        else {
            return Ok(None);
        };
        // The process sets its own limit: to set that of another one takes a privilege.
        let at = run.process.registers()?.rsp - BELOW;
        let kept = run.process.bytes(at, 16);
        let limits = |run: &mut Run, new: u64, old: u64| -> Result<bool, EngineError> {
            let (call, which) = (libc::SYS_prlimit64 as u64, u64::from(libc::RLIMIT_STACK));
            let done = run
                .process
                .system_call(instruction, call, [0, which, new, old, 0])?;
            Ok(done.0 == 0)
        };
        let is_known = limits(&mut run, 0, at)?;
        let words = [at, at + 8].map(|it| run.process.word(it).unwrap_or(0));
        let [usual, most] = words;
        let larger = LARGER.min(most);
        if !is_known || usual.saturating_mul(TIMES) > larger {
            return Ok(None);
        }
        run.process.write(at, &larger.to_le_bytes())?;
        let is_set = limits(&mut run, at, 0)?;
        run.process.write(at, &kept)?;
        if !is_set {
            return Ok(None);
        }
        self.changed_runs += 1;
        let _limit = run.process.limit(limit.times((larger / usual) as u32));
        loop {
            if let Next::Ended(ending) = self.resume(&mut run.process, Pace::Free)? {
                return Ok(Some((*ending, larger)));
            }
        }
    }

    /// Returns the values of the parameters of the function in which a run has stopped, and of the
    /// fields of the records to which they point.
    pub(super) fn parameters_at(&mut self, run: &mut Run, registers: &user_regs_struct) -> Values {
        let mut frames = vec![Frame::innermost(&by_number(registers))];
        // The values at the entry of a function are known by its caller.
        for at in 0..2 {
            if let Some(caller) = self.modules.caller(&mut frames[at], &mut run.process) {
                frames.push(caller);
            } else {
                break;
            }
        }
        let reading = Reading {
            info: &mut self.info,
            bias: self.bias,
            is_raw: false,
            arguments: &[],
        };
        let function = reading
            .info
            .function(frames[0].code.wrapping_sub(self.bias));
        let declared = function.iter().flat_map(|it| {
            let all = it.variables.iter().take(it.parameters);
            all.map(|it| it.id)
        });
        let declared: HashSet<u64> = declared.collect();
        let mut parameters = Vec::new();
        reading.locals(&frames, 0, registers, &mut run.process, &mut |it| {
            parameters.extend(it.flatten().filter(|it| {
                matches!(it.origin, Origin::Local { variable, .. } if declared.contains(&variable))
            }));
        });
        // They are told from the last to the first.
        parameters.reverse();
        self.values(run, registers, &parameters)
    }

    /// Returns the values of the parameters of a stopped run, and of the fields of the records to
    /// which they point.
    fn values(
        &self,
        run: &mut Run,
        registers: &user_regs_struct,
        parameters: &[Variable],
    ) -> Values {
        let mut found = Values::new();
        for it in parameters {
            let of = self.info.types.get(it.of);
            let (size, shape) = (of.size, of.shape.clone());
            let Some(seen) = self.seen(&mut run.process, it.place, it.of, registers) else {
                continue;
            };
            let address = seen.value as u64;
            found.push((it.name.clone(), seen));
            if let Shape::Pointer(to) = shape
                && size == 8
            {
                let fields = self.fields(to, 0, "");
                for (path, offset, of) in fields.into_iter().take(FIELDS) {
                    let place = Place::Memory(address.wrapping_add(offset));
                    let field = self.seen(&mut run.process, place, of, registers);
                    let name = format!("{}->{path}", it.name);
                    found.extend(field.map(|field| {
                        let by = Some(it.name.clone());
                        (name, Seen { by, ..field })
                    }));
                }
            }
        }
        found
    }

    /// Returns the numbers and pointers in a record: name, offset in bytes and type; none of other
    /// types.
    fn fields(&self, of: TypeId, start: u64, before: &str) -> Vec<(String, u64, TypeId)> {
        let it = self.info.types.get(of);
        let Shape::Record(fields) = &it.shape else {
            return Vec::new();
        };
        let mut found = Vec::new();
        if it.size > RECORD {
            return found;
        }
        for field in fields.iter().filter(|it| it.bits.is_none()) {
            let path = match (before.is_empty(), field.name.is_empty()) {
                (true, _) => field.name.clone(),
                (false, true) => before.to_owned(),
                (false, false) => format!("{before}.{}", field.name),
            };
            match self.info.types.get(field.of).shape {
                Shape::Base(_) | Shape::Enum(_) | Shape::Pointer(_) => {
                    found.push((path, start + field.offset, field.of));
                }
                Shape::Record(_) => {
                    found.extend(self.fields(field.of, start + field.offset, &path))
                }
                _ => {}
            }
        }
        found
    }

    /// Reads a number or pointer of a stopped process; `None` for other types, and where it cannot
    /// be read.
    fn seen(
        &self,
        process: &mut Process,
        place: Place,
        of: TypeId,
        registers: &user_regs_struct,
    ) -> Option<Seen> {
        let types = &self.info.types;
        let it = types.get(of);
        let is_signed = match &it.shape {
            Shape::Base(Encoding::Float) => return None,
            Shape::Base(encoding) => *encoding == Encoding::Signed,
            Shape::Enum(_) => true,
            Shape::Pointer(_) => false,
            _ => return None,
        };
        if it.size == 0 || it.size > 8 {
            return None;
        }
        let bytes = match place {
            Place::Memory(address) => process.bytes(address, it.size as usize),
            Place::Register(number) => {
                let all = by_number(registers);
                all.get(usize::from(number))?.to_le_bytes()[..it.size as usize].to_vec()
            }
        };
        if bytes.len() as u64 != it.size {
            return None;
        }
        let value = integer(&bytes, None, is_signed);
        let shown = match it.shape {
            Shape::Pointer(to) => self.named(process, to, value as u64),
            _ => None,
        };
        Some(Seen {
            value,
            shown: shown.unwrap_or_else(|| types.show(of, &bytes, None)),
            place,
            size: it.size,
            by: None,
        })
    }

    /// Returns a text by which a pointer is recognised: the one to which it leads, or the first one
    /// in the record to which it leads; `None` where there is none.
    fn named(&self, process: &mut Process, to: TypeId, address: u64) -> Option<String> {
        let types = &self.info.types;
        if types.is_char(to) {
            return text_at(process, address);
        }
        let Shape::Record(fields) = &types.get(to).shape else {
            return None;
        };
        fields.iter().find_map(|field| {
            let at = address.wrapping_add(field.offset);
            match types.get(field.of).shape {
                Shape::Array(of, _) if types.is_char(of) => text_at(process, at),
                Shape::Pointer(of) if types.is_char(of) => {
                    let at = process.word(at)?;
                    text_at(process, at)
                }
                _ => None,
            }
        })
    }
}

/// Returns the text at an address, quoted and cut to [`TEXT`] bytes; `None` where there is none.
fn text_at(process: &mut Process, address: u64) -> Option<String> {
    let bytes = process.bytes(address, TEXT + 1);
    let end = bytes.iter().position(|it| *it == 0);
    let text = &bytes[..end.unwrap_or(bytes.len()).min(TEXT)];
    let is_text = text.iter().all(|it| (b' '..0x7f).contains(it));
    let more = if end.is_none() { "…" } else { "" };
    (is_text && !bytes.is_empty()).then(|| format!("\"{}\"{more}", text.escape_ascii()))
}
