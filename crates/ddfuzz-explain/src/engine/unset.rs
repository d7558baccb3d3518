//! Finds memory that is read before anything sets it: a heap block since its allocation, a local
//! variable since the call of its function. The failing run is made again with a watchpoint on the
//! memory, and then with other values there from the beginning of the memory's life.

use ddfuzz_triage::memory::{Maps, Memory};

use super::instructions::Executed;
use super::origin::LONGEST;
use super::process::{Stop, by_number};
use super::run::{Next, Pace, Run};
use super::state::RED_ZONE;
use super::watchdog::TimeLimit;
use super::writer::Watched;
use super::writer::watch;
use super::{Ending, Engine, EngineError, Point, Side, if_supported};
use crate::crossing::{is_record, parts_at};
use crate::graph::{Graph, Leaf, LeafKind, Object, Origin, Place, Target};

/// Largest number of times that a run is stopped in the search for unset memory.
const MOST_STOPS: usize = 20_000;

/// Value of each byte that ddfuzz writes to the examined memory, to find out whether the run sets
/// the memory before the read: then the value changes.
const MARK: u8 = 0xa5;
/// Number of hardware watchpoints that an x86-64 processor has.
const WATCHPOINTS: usize = 4;
/// Flag in the size field that glibc stores before a heap block: set if the block has a memory
/// mapping (`mmap`) of its own.
const IS_MAPPED: u64 = 2;

/// Memory that the failing run reads although nothing has set it since the beginning of its life.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unset {
    /// Address and size of the memory in bytes.
    memory: (u64, u64),
    /// The last point of the failing run before the memory is read.
    to: Point,
    /// The event with which the life of the memory begins.
    begins: Begins,
    /// How many times a life of the memory begins in the run up to the read, as the same addresses
    /// may be allocated several times; the read is in the last of these lives.
    nth: u64,
    /// Addresses in the program's own code of the calls by which the life of the memory begins:
    /// those that led to the allocation of its heap block, or to the function whose local variable
    /// it is, innermost first.
    pub calls: Vec<u64>,
}

/// A variable that the failing run reads before anything sets it.
pub(crate) struct UnsetVariable {
    /// Name of the variable, as C would write it, such as `cell->next`.
    pub name: String,
    /// Whether the variable is a local one, or a part of one; false for memory in a heap block.
    pub is_local: bool,
    /// Addresses of a statement that sets another field of the record around the variable, and of
    /// the calls that led to it, innermost first. It is the last such statement of the function
    /// that is the first to set other fields after the beginning of the variable's life. Empty if
    /// there is none.
    pub beside: Vec<u64>,
    /// The value, in words, that the variable has from the beginning of its life on in the changed
    /// run that does not fail.
    pub instead: &'static str,
}

/// The event with which the life of some memory begins: before it, the memory is not allocated, and
/// its content means nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Begins {
    /// The function at `entry` is called, and its frame gets the canonical frame address `cfa`: the
    /// memory is a local variable of that call.
    Call { entry: u64, cfa: u64 },
    /// An allocating function returns a heap block that contains the memory.
    Allocation,
}

/// A call of a function that allocates memory, which has not returned yet.
struct Pending {
    /// Stack pointer of the caller after the call has returned.
    stack_pointer: u64,
    /// Number of bytes that the caller asks for.
    size: u64,
    /// Number of bytes at the beginning of the new block that the function itself sets: all for
    /// `calloc`, at most the size of the earlier block for `realloc`, and 0 for other functions.
    set: u64,
    /// Address of the block that the caller of `realloc` passes; 0 for other functions.
    earlier: u64,
}

/// What a run has shown so far about the examined memory: how often its life has begun, and whether
/// anything has set it since.
#[derive(Default)]
struct Life {
    /// The calls of allocating functions that have not returned yet, in the order of the calls.
    pending: Vec<Pending>,
    /// Addresses of the calls that led to the last beginning of the memory's life, innermost first;
    /// `None` if something has set the memory since, or its life has not begun.
    unset: Option<Vec<u64>>,
    /// Number of times that the life of the memory has begun in the run: number of calls of the
    /// function whose local variable the memory is, with the same frame address; or number of
    /// allocations of a block that contains the memory. A `realloc` that leaves the block at its
    /// address does not count if the memory was in the block before.
    begun: u64,
}

impl Engine {
    /// Finds out whether nothing sets `memory` (address and size in bytes) in the failing run from
    /// the beginning of its life up to the point `to`. Its life begins when its heap block is
    /// allocated, or when the function is called whose local variable it is. If nothing sets the
    /// memory, returns what is known of it; `None` if something sets any of its bytes, or if that
    /// is not known.
    ///
    /// # Errors
    /// When the runs cannot be made.
    pub(super) fn unset_since(
        &mut self,
        memory: (u64, u64),
        to: Point,
    ) -> Result<Option<Unset>, EngineError> {
        let Some(begins) = self.life_of(memory.0, to)? else {
            return Ok(None);
        };
        let Some((_, life)) = self.lived(memory, begins, to, None)? else {
            return Ok(None);
        };
        let calls = life.unset.filter(|calls| !calls.is_empty());
        Ok(calls.map(|calls| Unset {
            memory,
            to,
            begins,
            nth: life.begun,
            calls,
        }))
    }

    /// Makes the failing run with breakpoints where the life of the memory of `size` bytes at
    /// `address` may begin, as `begins` says. If `nth` is given, stops the run when that life
    /// begins for the time `nth` (from 1). Otherwise watches the memory for writes, and stops the
    /// run at the point `to`. Returns the stopped run and what it has shown of the memory; `None`
    /// if the run does not come so far.
    fn lived(
        &mut self,
        (address, size): (u64, u64),
        begins: Begins,
        to: Point,
        nth: Option<u64>,
    ) -> Result<Option<(Run, Life)>, EngineError> {
        let Some(mut run) = self.at_entry(Side::Failing)? else {
            return Ok(None);
        };
        let allocators = self.stop_at_beginnings(&mut run, begins)?;
        if nth.is_none() {
            let watched = Watched {
                address,
                size,
                frame: None,
            };
            watch(&run.process, watched)?;
        }
        run.process.set_breakpoint(to.pc)?;
        let mut life = Life::default();
        let mut value = run.process.bytes(address, size as usize);
        for _ in 0..MOST_STOPS {
            self.check_time()?;
            let next = self.resume(&mut run.process, Pace::SystemCalls)?;
            let before = match &next {
                Next::Ended(_) => return Ok(None),
                _ => std::mem::replace(&mut value, run.process.bytes(address, size as usize)),
            };
            match next {
                Next::Ended(_) => break,
                Next::Other(Stop::SystemCall) => {
                    // What has just been mapped was written by nobody.
                    let is_changed = before != value && before.len() == value.len();
                    if is_changed || reads_into(&run, address, size)? {
                        life.unset = None;
                    }
                }
                // Memory was written.
                Next::Other(_) => life.unset = None,
                Next::Breakpoint(registers) => {
                    if registers.rip == to.pc {
                        let hits = run.hits.entry(to.pc).or_default();
                        if *hits + 1 == to.nth {
                            return Ok(nth.is_none().then_some((run, life)));
                        }
                        *hits += 1;
                    }
                    self.record_stop(&mut run, (begins, &allocators), address, &mut life)?;
                    if nth == Some(life.begun) {
                        return Ok(Some((run, life)));
                    }
                    if run.process.step_over_writes(registers.rip)? {
                        life.unset = None;
                    }
                }
            }
        }
        Ok(None)
    }

    /// Sets breakpoints in `run` at the functions whose calls may be the event `begins`: at the
    /// function whose local variable the memory is, or at all functions that allocate heap blocks.
    /// Returns names and addresses of the allocating functions; empty for a local variable.
    fn stop_at_beginnings(
        &mut self,
        run: &mut Run,
        begins: Begins,
    ) -> Result<Vec<(&'static str, u64)>, EngineError> {
        let mut allocators = Vec::new();
        match begins {
            Begins::Call { entry, .. } => run.process.set_breakpoint(entry)?,
            Begins::Allocation => {
                for name in ["malloc", "calloc", "realloc", "aligned_alloc", "memalign"] {
                    if let Some(at) = self.runtime_symbol(&run.process, name) {
                        run.process.set_breakpoint(at)?;
                        allocators.push((name, at));
                    }
                }
            }
        }
        Ok(allocators)
    }

    /// Returns the variable to which the memory `unset` belongs if its unset value matters for the
    /// failure; the instruction at the address `read` reads the memory in the failing run before
    /// anything sets it. Up to three runs of the failing input are made, each with another value
    /// written to the memory at the beginning of its life. The first has the bytes [`MARK`], and
    /// checks that the memory still has them at the read. The second has zero. The third, made if
    /// the second fails, has the value that the instruction reads in the passing run. The second
    /// and third may take `limit`; `averts` returns true for the end of a run that does not fail.
    /// `None` if both of them fail, if the marks have changed at the read, or if the memory belongs
    /// to no variable of a known type.
    ///
    /// # Errors
    /// When the runs cannot be made.
    pub(crate) fn unset_variable(
        &mut self,
        (unset, read): (&Unset, Option<u64>),
        limit: TimeLimit,
        averts: impl Fn(&Ending) -> bool,
    ) -> Result<Option<UnsetVariable>, EngineError> {
        let Some(graph) = if_supported(self.kept_state(unset))? else {
            return Ok(None);
        };
        let Some((id, offset)) = graph.containing(unset.memory.0) else {
            return Ok(None);
        };
        let object = &graph.objects[id];
        let mut leaves = object.leaves.iter();
        let leaf = leaves.find(|it| (it.offset..it.offset + it.size).contains(&offset));
        let is_described = !matches!(object.origin, Origin::Undescribed | Origin::Raw);
        let Some(leaf) = leaf.filter(|_| is_described) else {
            return Ok(None);
        };
        let name = self.name_by_pointer(&graph, (id, offset), leaf);
        let name = name.unwrap_or_else(|| graph.name_of(id, leaf, offset));
        let zeros = Some(vec![0; unset.memory.1 as usize]);
        let instead = match self
            .with_value(unset, zeros, limit)?
            .is_some_and(|it| averts(&it))
        {
            true => "0",
            false => {
                let value = if_supported(self.passing_value(unset, read))?;
                match self
                    .with_value(unset, value, limit)?
                    .is_some_and(|it| averts(&it))
                {
                    true => "the value of the passing run",
                    false => return Ok(None),
                }
            }
        };
        let fields = self.fields_beside(&graph, unset.memory);
        let beside = if_supported(self.set_beside(unset, &fields).map(Some))?;
        Ok(Some(UnsetVariable {
            name,
            is_local: matches!(unset.begins, Begins::Call { .. }),
            beside: beside.unwrap_or_default(),
            instead,
        }))
    }

    /// Makes the failing run, which may take `limit`, with `value` written to the memory `unset` at
    /// the beginning of its life, and returns how the run ends. `None` if `value` is `None`, if the
    /// run does not come to the beginning of that life, or if the memory is not there yet.
    fn with_value(
        &mut self,
        unset: &Unset,
        value: Option<Vec<u8>>,
        limit: TimeLimit,
    ) -> Result<Option<Ending>, EngineError> {
        let Some(value) = value else {
            return Ok(None);
        };
        let Some((mut run, _)) = self.beginning(unset)? else {
            return Ok(None);
        };
        let (address, size) = unset.memory;
        // A part of the stack that is used later need not be there yet.
        if run.process.bytes(address, size as usize).len() != value.len() {
            return Ok(None);
        }
        self.changed_runs += 1;
        run.process.write(address, &value)?;
        let _limit = run.process.limit(limit);
        loop {
            self.check_time()?;
            if let Next::Ended(ending) = self.resume(&mut run.process, Pace::Free)? {
                return Ok(Some(*ending));
            }
        }
    }

    /// Returns the bytes that the instruction at the address `read` reads when the passing run
    /// first executes it. `None` if `read` is `None`, if both runs have the same input, if the
    /// passing run does not execute the instruction, or if it reads another number of bytes than
    /// `unset` has.
    fn passing_value(
        &mut self,
        unset: &Unset,
        read: Option<u64>,
    ) -> Result<Option<Vec<u8>>, EngineError> {
        let [passing, failing] = &self.sides;
        let Some(read) = read.filter(|_| passing.1 != failing.1) else {
            return Ok(None);
        };
        let mut run = self.start(Side::Passing)?;
        run.process.set_breakpoint(read)?;
        let registers = loop {
            self.check_time()?;
            match self.resume(&mut run.process, Pace::Free)? {
                Next::Breakpoint(registers) => break registers,
                Next::Ended(_) => return Ok(None),
                Next::Other(_) => {}
            }
        };
        run.process.remove_breakpoints()?;
        let code = run.process.bytes(read, LONGEST as usize);
        let executed = Executed::new(&code, by_number(&registers));
        let memory = executed.and_then(|it| it.read());
        let memory = memory.filter(|it| it.1 == unset.memory.1);
        Ok(memory.map(|(at, size)| run.process.bytes(at, size as usize)))
    }

    /// Returns a name of the value `leaf` that leads to it by a pointer, such as `cell->next`. The
    /// value is at the offset and in the object of the state `graph` that are given. The pointer is
    /// a local variable that points to the innermost record around the value; of several, one of
    /// the innermost frame. `None` if there is no such pointer.
    pub(super) fn name_by_pointer(
        &self,
        graph: &Graph,
        (id, offset): Target,
        leaf: &Leaf,
    ) -> Option<String> {
        let types = &self.info.types;
        let object = &graph.objects[id];
        let Place::Memory(start) = object.place else {
            return None;
        };
        let parts = parts_at(types, (object.of, object.bytes.len() as u64), offset);
        let record = parts.iter().rfind(|it| is_record(types, it))?;
        let path = leaf.path.strip_prefix(&record.path)?.strip_prefix('.')?;
        let frame = |it: &Object| match it.origin {
            Origin::Local { frame, .. } => Some(frame),
            _ => None,
        };
        let leads = |it: &&Object| {
            let pointer = it.leaves.first().filter(|leaf| leaf.path.is_empty());
            pointer.is_some_and(|leaf| {
                leaf.kind == LeafKind::Pointer(record.of)
                    && it.address(leaf) == start + record.range.start
            })
        };
        let pointers = graph.objects.iter().filter(|it| frame(it).is_some());
        let pointer = pointers.filter(leads).max_by_key(|it| frame(it))?;
        Some(format!("{}->{path}", pointer.name))
    }

    /// Makes the failing run up to the beginning of the life of the memory `unset`. Returns the
    /// stopped run, without breakpoints, and what it has shown of the memory; `None` if it does not
    /// come so far.
    fn beginning(&mut self, unset: &Unset) -> Result<Option<(Run, Life)>, EngineError> {
        let found = self.lived(unset.memory, unset.begins, unset.to, Some(unset.nth))?;
        let Some((mut run, life)) = found else {
            return Ok(None);
        };
        run.process.remove_breakpoints()?;
        Ok(Some((run, life)))
    }

    /// Makes the failing run up to the last point before the read of the memory `unset`, and
    /// returns the memory graph at this point. As a check that nothing sets the memory, each of its
    /// bytes is overwritten with a mark at the beginning of its life, and gets its old value back
    /// before the graph is read. `None` if a mark was overwritten in between, by the program or the
    /// kernel, or if the memory cannot be written at the beginning of its life.
    fn kept_state(&mut self, unset: &Unset) -> Result<Option<Graph>, EngineError> {
        let Some((mut run, _)) = self.beginning(unset)? else {
            return Ok(None);
        };
        let (address, size) = unset.memory;
        let before = run.process.bytes(address, size as usize);
        let marks = vec![MARK; size as usize];
        if before.len() != marks.len() {
            return Ok(None);
        }
        run.process.write(address, &marks)?;
        self.run_to(&mut run, unset.to)?;
        if run.process.bytes(address, size as usize) != marks {
            return Ok(None);
        }
        run.process.write(address, &before)?;
        Ok(Some(self.capture(&mut run)?.graph))
    }

    /// Returns the fields of the innermost record around `memory` (address and size in bytes) in
    /// the state `graph`, except for those in `memory` itself: the four nearest to `memory`, the
    /// nearest first. For each, returns the address and the size of its first bytes, as many as one
    /// watchpoint can watch.
    pub(super) fn fields_beside(&self, graph: &Graph, memory: (u64, u64)) -> Vec<(u64, u64)> {
        let types = &self.info.types;
        let Some((id, offset)) = graph.containing(memory.0) else {
            return Vec::new();
        };
        let object = &graph.objects[id];
        let Place::Memory(start) = object.place else {
            return Vec::new();
        };
        let parts = parts_at(types, (object.of, object.bytes.len() as u64), offset);
        let Some(record) = parts.iter().rfind(|it| is_record(types, it)) else {
            return Vec::new();
        };
        let fields = object.leaves.iter().filter(|it| {
            let is_other = it.offset >= offset + memory.1 || it.offset + it.size <= offset;
            is_other && record.range.contains(&it.offset)
        });
        let watched = fields.map(|it| {
            let at = start + it.offset;
            let fits = |size: &u64| *size <= it.size && at.is_multiple_of(*size);
            (at, [8, 4, 2].into_iter().find(fits).unwrap_or(1))
        });
        let mut found: Vec<(u64, u64)> = watched.collect();
        found.dedup_by_key(|it| it.0);
        found.sort_by_key(|it| it.0.abs_diff(memory.0));
        found.truncate(WATCHPOINTS);
        found
    }

    /// Makes the failing run from the beginning of the life of the memory `unset` up to its read,
    /// and finds the function call that is the first to set any of `fields` (address and size in
    /// bytes of each). Returns the addresses of the last statement of this call that sets one of
    /// them, before another call does, and of the calls that led to this statement, innermost
    /// first; empty if nothing sets the fields.
    fn set_beside(
        &mut self,
        unset: &Unset,
        fields: &[(u64, u64)],
    ) -> Result<Vec<u64>, EngineError> {
        let mut last: Vec<u64> = Vec::new();
        let Some((mut run, _)) = self.beginning(unset)?.filter(|_| !fields.is_empty()) else {
            return Ok(last);
        };
        for (slot, (at, size)) in fields.iter().enumerate() {
            run.process.watch(slot, *at, *size)?;
        }
        run.process.set_breakpoint(unset.to.pc)?;
        for _ in 0..MOST_STOPS {
            self.check_time()?;
            let is_write = match self.resume(&mut run.process, Pace::Free)? {
                Next::Ended(_) => break,
                Next::Other(stop) => stop == Stop::Trap,
                Next::Breakpoint(registers) => {
                    let hits = run.hits.entry(unset.to.pc).or_default();
                    *hits += 1;
                    if *hits >= unset.to.nth {
                        break;
                    }
                    run.process.step_over_writes(registers.rip)?
                }
            };
            if !is_write {
                continue;
            }
            let writer = self.describe(&mut run.process, Side::Failing, fields[0].0, false)?;
            let Some(calls) = writer.map(|it| it.calls).filter(|it| !it.is_empty()) else {
                continue;
            };
            let is_same = last.is_empty()
                || calls[1..] == last[1..] && self.function(calls[0]) == self.function(last[0]);
            if !is_same {
                break;
            }
            last = calls;
        }
        Ok(last)
    }

    /// Returns the event with which the memory at `address`, which is used at the point `to` of the
    /// failing run, began its life: an allocation, or the call of the function whose local variable
    /// it is. `None` for a global variable, and where that is not known.
    fn life_of(&mut self, address: u64, to: Point) -> Result<Option<Begins>, EngineError> {
        let mut run = self.start(Side::Failing)?;
        self.run_to(&mut run, to)?;
        let registers = run.process.registers()?;
        let maps = Maps::of(run.process.pid);
        let around = maps.iter().find(|it| (it.start..it.end).contains(&address));
        let Some(around) = around.filter(|it| it.writable) else {
            return Ok(None);
        };
        if !(around.start..around.end).contains(&registers.rsp) {
            // A global variable is set from the beginning.
            return Ok((!around.is_file() && around.base_name() != "[stack]")
                .then_some(Begins::Allocation));
        }
        let frames = self.frames(&mut run.process)?;
        let own = frames.iter().find(|it| address < it.cfa);
        let own = own.filter(|_| address + RED_ZONE >= registers.rsp);
        Ok(own.and_then(|frame| {
            let function = self.info.function(frame.code.wrapping_sub(self.bias))?;
            let entry = function.ranges[0].start.wrapping_add(self.bias);
            let cfa = frame.cfa;
            Some(Begins::Call { entry, cfa })
        }))
    }

    /// Updates `life`, what is known of the memory at `address`, when `run` has stopped at a
    /// breakpoint. If `begins` is the call of a function, and the run has stopped at this call, the
    /// life of the memory begins. If `begins` is an allocation, a call of one of `allocators`
    /// (names and addresses of functions) is added to the pending ones; when such a call returns,
    /// the life of the memory begins if it is in the new block.
    fn record_stop(
        &mut self,
        run: &mut Run,
        (begins, allocators): (Begins, &[(&str, u64)]),
        address: u64,
        life: &mut Life,
    ) -> Result<(), EngineError> {
        let registers = run.process.registers()?;
        let allocator = allocators.iter().find(|(_, at)| *at == registers.rip);
        if let Begins::Call { entry, cfa } = begins {
            if (registers.rip, registers.rsp + 8) == (entry, cfa) {
                let mut frames = self.frames(&mut run.process)?;
                // Its first instruction has not been executed yet.
                if let Some(innermost) = frames.first_mut() {
                    innermost.code += 1;
                }
                life.unset = Some(self.own_calls(&frames));
                life.begun += 1;
            }
        } else if let Some((name, _)) = allocator {
            let size = match *name {
                "malloc" => registers.rdi,
                "calloc" => registers.rdi.saturating_mul(registers.rsi),
                _ => registers.rsi,
            };
            let (set, earlier) = match *name {
                "calloc" => (u64::MAX, 0),
                "realloc" => (self.copied_by_realloc(run, registers.rdi), registers.rdi),
                _ => (0, 0),
            };
            if let Some(back) = run.process.word(registers.rsp) {
                run.process.set_breakpoint(back)?;
                life.pending.push(Pending {
                    stack_pointer: registers.rsp + 8,
                    size,
                    set,
                    earlier,
                });
            }
        } else {
            life.pending.retain(|it| it.stack_pointer >= registers.rsp);
            let is_returned = |it: &mut Pending| it.stack_pointer == registers.rsp;
            if let Some(call) = life.pending.pop_if(is_returned)
                && (registers.rax..registers.rax.saturating_add(call.size)).contains(&address)
            {
                let frames = self.frames(&mut run.process)?;
                let calls = self.own_calls(&frames);
                let is_set = address - registers.rax < call.set;
                // Of a block that grows where it is, the earlier part lives on.
                if !is_set || call.earlier != registers.rax {
                    life.unset = Some(calls).filter(|_| !is_set);
                    life.begun += 1;
                }
            }
        }
        Ok(())
    }

    /// Returns how many bytes of the heap block at the address `block` a call of `realloc` keeps at
    /// most, in the new block or where they are; 0 if `block` is 0, and `u64::MAX` if the size of
    /// the block is not known, as with AddressSanitizer.
    fn copied_by_realloc(&self, run: &mut Run, block: u64) -> u64 {
        if block == 0 {
            return 0;
        }
        let size = run.process.word(block.wrapping_sub(8));
        match size.filter(|_| !self.has_asan) {
            Some(size) if size & IS_MAPPED != 0 => (size & !7).saturating_sub(16),
            Some(size) => (size & !7).saturating_sub(8),
            None => u64::MAX,
        }
    }
}

/// Returns true if the system call at which `run` is stopped may write to the `size` bytes at
/// `address`: it reads a file into a buffer that overlaps them, or it is a call with several
/// buffers, which are not looked at.
fn reads_into(run: &Run, address: u64, size: u64) -> Result<bool, EngineError> {
    let registers = run.process.registers()?;
    let call = registers.orig_rax as i64;
    let to = registers.rsi..registers.rsi.saturating_add(registers.rdx);
    let is_plain = [libc::SYS_read, libc::SYS_pread64].contains(&call);
    let is_other = [libc::SYS_readv, libc::SYS_recvmsg, libc::SYS_preadv].contains(&call);
    Ok(is_other || is_plain && address < to.end && to.start < address + size)
}
