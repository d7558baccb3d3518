//! Finds accesses past the end of heap blocks: the block, the statement that allocated it, and the
//! statement that wrote. A run that has crashed is made again, with a watchpoint on the word in
//! which the allocator keeps the size of the next block.

use std::collections::HashMap;

use ddfuzz_triage::memory::{Maps, Memory};

use super::heap::{Damaged, damaged, heap_blocks, is_size, says_used};
use super::instructions::Value;
use super::origin::History;
use super::process::Stop;
use super::run::{Next, Pace, Run};
use super::writer::{LastWrite, Watched, watch};
use super::{Ending, Engine, EngineError, Side};
use crate::dwarf::frames::Frame;
use crate::unfold::Area;

/// Largest number of times that a run is stopped to observe the allocations of heap blocks and the
/// writes past their ends; if a run has more stops, nothing is reported of it.
const MOST_STOPS: usize = 60_000;
/// Largest number of calls on the stack that are recorded for an allocation.
const CALLERS: usize = 4;
/// Largest distance, in bytes, from the end of mapped memory to a crashing access that counts as
/// one past the end of a heap block.
const FARTHEST: u64 = 16 << 20;
/// Names of the C library's functions that allocate memory.
pub(super) const ALLOCATORS: [&str; 5] =
    ["malloc", "calloc", "realloc", "aligned_alloc", "memalign"];

/// DWARF number of the register with the first argument of a function.
const RDI: usize = 5;
/// DWARF number of the register with the second argument of a function.
const RSI: usize = 4;

/// A write past the end of a heap block.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Overflow {
    /// The allocation of the block past whose end the run has written.
    pub block: Allocated,
    /// The write that changed the allocator's size field after the block.
    pub write: LastWrite,
    /// Address of the allocator's size field that was overwritten.
    pub word: u64,
    /// Whether the run no longer fails in the same way when the overwritten size field keeps its
    /// value.
    pub is_averted: bool,
}

/// An allocation of a heap block by the program: its size, and where in the program it was made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Allocated {
    /// Number of bytes that the program asked for.
    pub size: u64,
    /// Addresses of the calls in the program's own code that led to the allocation, innermost
    /// first.
    pub calls: Vec<u64>,
    /// Number of the innermost of `calls` that are made in functions which return the new block to
    /// their caller, as a function that also checks that there is memory.
    pub wrappers: usize,
    /// The call of the allocating function, from which the size can be followed back.
    pub asked: AllocationCall,
}

/// A crash by an access past the end of a heap block, at an address that was computed from the
/// pointer to the block.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Beyond {
    /// The allocation of the block past whose end the program accessed memory.
    pub block: Allocated,
    /// Address of the instruction that crashed.
    pub at: u64,
    /// Whether the instruction that crashed reads memory, and does not write it.
    pub is_read: bool,
}

/// A call of a function that allocates memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AllocationCall {
    /// Return address of the call: where the caller goes on.
    pub back: u64,
    /// How often the run has called an allocating function with the return address `back`,
    /// including this call.
    pub nth: u64,
    /// DWARF numbers of the registers with the arguments that determine the allocated size.
    pub sizes: &'static [usize],
}

/// A call of an allocating function that has not returned yet.
struct Pending {
    stack_pointer: u64,
    size: u64,
    asked: AllocationCall,
}

/// What a run has shown so far in the search for the heap block past whose end it writes: the
/// block's allocation, and the write past its end.
#[derive(Default)]
struct Followed {
    pending: Vec<Pending>,
    /// Number of calls of allocating functions so far, by return address.
    calls: HashMap<u64, u64>,
    allocated: Option<Allocated>,
    /// Where the functions return to, and their stack pointers then, that have called for the block
    /// and may return it, innermost first.
    returning: Vec<(u64, u64)>,
    overwritten: Option<(Allocated, LastWrite)>,
    value: Option<u64>,
    /// Whether the watched word has been overwritten, so that it is no longer a size field.
    is_overwritten: bool,
    /// Number of writes to the block's overwritten size field that the processor's watchpoint has
    /// seen.
    writes: u64,
}

impl Engine {
    /// Finds the heap block past whose end the failing run has written first, and whether the run
    /// still fails if that write is undone: `fails` tells from the end of a run whether it is the
    /// same failure. `None` if no size field of the allocator was overwritten, or if the block's
    /// allocation was not seen.
    ///
    /// # Errors
    /// When the run cannot be made.
    pub fn overflow(
        &mut self,
        fails: impl Fn(&Ending) -> bool,
    ) -> Result<Option<Overflow>, EngineError> {
        let mut run = self.start(Side::Failing)?;
        while !matches!(self.resume(&mut run.process, Pace::Free)?, Next::Ended(_)) {}
        let maps = Maps::of(run.process.pid);
        let Some(damaged) = damaged(&maps, &mut run.process) else {
            return Ok(None);
        };
        let followed = self.followed(run, damaged)?;
        let Some((block, write)) = followed.overwritten else {
            return Ok(None);
        };
        let is_averted = !fails(&self.with_word_restored(damaged)?);
        Ok(Some(Overflow {
            block,
            write,
            word: damaged.word,
            is_averted,
        }))
    }

    /// Finds the heap block past whose end the failing run accessed memory when it crashed: the
    /// faulting address, close behind the block, was computed from the pointer to the block. `None`
    /// where there is no such block. `history` says where the values of the crash came from.
    ///
    /// # Errors
    /// When the run cannot be made.
    pub(crate) fn beyond(&mut self, history: &History) -> Result<Option<Beyond>, EngineError> {
        // A block that AddressSanitizer has reported is known already.
        if self.has_asan {
            return Ok(None);
        }
        let Some((recorded, last)) = history.moments.first() else {
            return Ok(None);
        };
        let (crashed, Some(fault)) = (&recorded.executed[*last], recorded.fault) else {
            return Ok(None);
        };
        let pointers = recorded.pointers(*last);
        let mut run = self.start(Side::Failing)?;
        while !matches!(self.resume(&mut run.process, Pace::Free)?, Next::Ended(_)) {}
        let maps = Maps::of(run.process.pid);
        // What is written behind a short block is near; an index of 0xffffffff is wrong for another
        // reason.
        let is_near = |end: u64| end <= fault && fault - end < FARTHEST;
        // Where memory can be read and written, only a jump to it fails.
        let is_jump = (maps.find(fault)).is_some_and(|it| it.readable && it.writable);
        if is_jump || !maps.iter().any(|it| is_near(it.end)) {
            return Ok(None);
        }
        let blocks = heap_blocks(&maps, &mut run.process).blocks;
        let is_it = |it: &&Area| pointers.contains(&it.start) && it.end <= fault;
        let Some(block) = blocks.iter().find(is_it) else {
            return Ok(None);
        };
        let damaged = Damaged {
            block: block.start,
            word: fault & !7,
        };
        let allocated = self.followed(run, damaged)?.allocated;
        Ok(allocated.map(|block| Beyond {
            block,
            at: crashed.pc(),
            is_read: !crashed.is_write_to(Value::Memory(fault, 1)),
        }))
    }

    /// Returns the last allocation in the failing run of the heap block with the addresses `block`;
    /// `None` where it was not seen.
    ///
    /// # Errors
    /// When the run cannot be made.
    pub(super) fn allocation(
        &mut self,
        block: &std::ops::Range<u64>,
    ) -> Result<Option<Allocated>, EngineError> {
        let Some(run) = self.at_entry(Side::Failing)? else {
            return Ok(None);
        };
        let damaged = Damaged {
            block: block.start,
            word: block.end.next_multiple_of(8),
        };
        Ok(self.followed(run, damaged)?.allocated)
    }

    /// Starts the failing run and sets a watchpoint on `damaged.word`, the size field of the
    /// allocator that this run overwrites. `None` where the address of the program's first
    /// instruction is not known.
    fn watching(&mut self, damaged: Damaged) -> Result<Option<Run>, EngineError> {
        let run = self.at_entry(Side::Failing)?;
        if let Some(run) = &run {
            let watched = Watched {
                address: damaged.word,
                size: 8,
                frame: None,
            };
            watch(&run.process, watched)?;
        }
        Ok(run)
    }

    /// Makes the failing run once more, and observes two events: the last allocation of the heap
    /// block `damaged`, and after it the first write to the size field behind this block. What was
    /// not seen is missing in the result. `ended` is an earlier run that has crashed, in whose
    /// process the allocating functions are looked up.
    fn followed(&mut self, ended: Run, damaged: Damaged) -> Result<Followed, EngineError> {
        let address = |name: &&str| self.runtime_symbol(&ended.process, name);
        let allocators: Vec<u64> = ALLOCATORS.iter().filter_map(address).collect();
        drop(ended);
        let mut known = Followed::default();
        let Some(mut run) = self.watching(damaged)?.filter(|_| !allocators.is_empty()) else {
            return Ok(known);
        };
        for allocator in &allocators {
            run.process.set_breakpoint(*allocator)?;
        }
        for _ in 0..MOST_STOPS {
            self.check_time()?;
            match self.resume(&mut run.process, Pace::SystemCalls)? {
                Next::Ended(_) => return Ok(known),
                Next::Breakpoint(registers) => {
                    let at = allocators.iter().position(|it| *it == registers.rip);
                    self.allocating(&mut run, &registers, at, damaged, &mut known)?;
                    run.process.step_over(registers.rip)?;
                }
                Next::Other(stop) => self.compare(&mut run, &stop, damaged, &mut known)?,
            }
        }
        Ok(Followed::default())
    }

    /// Records in `known` that a run enters an allocating function (`allocator` is its index in
    /// [`ALLOCATORS`]), or that it returns from one (`allocator` is `None`).
    fn allocating(
        &mut self,
        run: &mut Run,
        registers: &libc::user_regs_struct,
        allocator: Option<usize>,
        damaged: Damaged,
        known: &mut Followed,
    ) -> Result<(), EngineError> {
        if let Some(allocator) = allocator {
            let (size, sizes): (_, &[usize]) = match ALLOCATORS[allocator] {
                "malloc" => (registers.rdi, &[RDI]),
                "calloc" => (registers.rdi.saturating_mul(registers.rsi), &[RDI, RSI]),
                _ => (registers.rsi, &[RSI]),
            };
            if let Some(back) = run.process.word(registers.rsp) {
                run.process.set_breakpoint(back)?;
                let nth = known.calls.entry(back).or_default();
                *nth += 1;
                known.pending.push(Pending {
                    stack_pointer: registers.rsp + 8,
                    size,
                    asked: AllocationCall {
                        back,
                        nth: *nth,
                        sizes,
                    },
                });
            }
            return Ok(());
        }
        self.returns_block(run, registers, damaged, known)?;
        // Calls that a `longjmp` has left never return.
        known.pending.retain(|it| it.stack_pointer >= registers.rsp);
        let is_returned = |it: &mut Pending| it.stack_pointer == registers.rsp;
        if let Some(call) = known.pending.pop_if(is_returned)
            && registers.rax == damaged.block
            && damaged.block.saturating_add(call.size) <= damaged.word
        {
            let frames = self.frames(&mut run.process)?;
            let calls = self.own_calls(&frames);
            let user = frames.iter().take_while(|it| self.is_own_code(it.code - 1));
            let callers = frames.iter().skip(1).zip(user);
            let returning = callers.map(|(caller, it)| (caller.pc, it.cfa));
            known.returning = returning.take(CALLERS - 1).collect();
            known.allocated = Some(Allocated {
                size: call.size,
                wrappers: 0,
                calls,
                asked: call.asked,
            });
            known.overwritten = None;
            if let Some((back, _)) = known.returning.first() {
                run.process.set_breakpoint(*back)?;
            }
        }
        Ok(())
    }

    /// Records in `known` that a function, which has called for the heap block `damaged`, returns the
    /// block to its caller, if the run has just returned from one. Watches the next one then.
    fn returns_block(
        &mut self,
        run: &mut Run,
        registers: &libc::user_regs_struct,
        damaged: Damaged,
        known: &mut Followed,
    ) -> Result<(), EngineError> {
        let Some(allocated) = &mut known.allocated else {
            return Ok(());
        };
        let Some(next) = known.returning.first().copied() else {
            return Ok(());
        };
        if (registers.rip, registers.rsp) != next {
            return Ok(());
        }
        known.returning.remove(0);
        match registers.rax == damaged.block && allocated.wrappers + 1 < allocated.calls.len() {
            true => allocated.wrappers += 1,
            false => known.returning.clear(),
        }
        if let Some((back, _)) = known.returning.first() {
            run.process.set_breakpoint(*back)?;
        }
        Ok(())
    }

    /// Returns the addresses of the calls in the stack `frames` that the user's code makes,
    /// innermost first. If there are none, returns the calls made by other code with debug
    /// information, such as headers of a standard library.
    pub(super) fn own_calls(&self, frames: &[Frame]) -> Vec<u64> {
        let codes = frames.iter().enumerate().map(|(index, frame)| match index {
            0 => frame.code - 1,
            _ => frame.code,
        });
        let is_own = |code: &u64| self.info.function(code.wrapping_sub(self.bias)).is_some();
        let own: Vec<u64> = codes.filter(is_own).collect();
        let user = own.iter().copied().filter(|code| self.is_user(*code));
        let user: Vec<u64> = user.collect();
        let mut calls = if user.is_empty() { own } else { user };
        calls.truncate(CALLERS);
        calls
    }

    /// Returns true if `word`, the value that the run has just written to a size field of the
    /// allocator, must have overwritten the field: it is no valid size; or the program's own code
    /// has written it, and it says that the block before is freed. False if it may be a size.
    fn overwrites(&self, run: &Run, word: u64) -> Result<bool, EngineError> {
        let is_own = self.is_own_code(run.process.registers()?.rip);
        Ok(!is_size(word) || is_own && !says_used(word))
    }

    /// Watches for a write past the end of a heap block: at a stop of the run, compares the size
    /// field after the block with its earlier value. If the field has become a number that is no
    /// valid size, records in `known` the write that changed it; if it has become valid again,
    /// forgets that write. `damaged` has the block and the address of the size field.
    fn compare(
        &mut self,
        run: &mut Run,
        stop: &Stop,
        damaged: Damaged,
        known: &mut Followed,
    ) -> Result<(), EngineError> {
        known.writes += u64::from(*stop == Stop::Trap);
        let now = run.process.word(damaged.word);
        let before = std::mem::replace(&mut known.value, now);
        let Some(now) = now.filter(|_| before != now) else {
            return Ok(());
        };
        let overwrites = self.overwrites(run, now)?;
        let was_overwritten = std::mem::replace(&mut known.is_overwritten, overwrites);
        match (was_overwritten || before.is_none(), overwrites) {
            (false, true) => {
                let by_kernel = matches!(stop, Stop::SystemCall);
                let writer =
                    self.describe(&mut run.process, Side::Failing, damaged.word, by_kernel)?;
                let nth = known.writes;
                let write = writer.map(|writer| LastWrite { writer, nth });
                known.overwritten = known.allocated.clone().zip(write);
            }
            (true, false) => known.overwritten = None,
            _ => {}
        }
        Ok(())
    }

    /// Makes the failing run to its end. Each time that it overwrites the allocator's size field
    /// after the heap block in `damaged` with a value that is no size, writes the earlier value
    /// back. Returns how the run ended.
    fn with_word_restored(&mut self, damaged: Damaged) -> Result<Ending, EngineError> {
        let unsteady = EngineError::Unsupported(super::Unsupported::Unsteady);
        let mut run = self.watching(damaged)?.ok_or(unsteady)?;
        let mut value = None;
        loop {
            self.check_time()?;
            if let Next::Ended(ending) = self.resume(&mut run.process, Pace::SystemCalls)? {
                return Ok(*ending);
            }
            let now = run.process.word(damaged.word);
            match (value, now) {
                (Some(before), Some(now))
                    if before != now && is_size(before) && self.overwrites(&run, now)? =>
                {
                    run.process.write(damaged.word, &u64::to_le_bytes(before))?;
                }
                _ => value = now,
            }
        }
    }
}
