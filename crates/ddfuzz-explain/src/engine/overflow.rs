//! Writes behind the end of heap blocks: which block, who allocated it, and who wrote. A run that
//! has crashed is made again, with a watch on the word in which the allocator keeps the size of the
//! next block.

use std::collections::HashMap;

use ddfuzz_triage::memory::{Maps, Memory};

use super::heap::{Damaged, damaged, is_size};
use super::prepared::library_symbol;
use super::process::Stop;
use super::run::{Next, Pace, Run};
use super::writer::Writer;
use super::{Ending, Engine, EngineError, Side};
use crate::dwarf::frames::Frame;

/// Largest number of stops of a run in which the allocations of a block and writes past its end are
/// followed.
const MOST_STOPS: usize = 60_000;
/// Largest number of calls on the stack that are recorded for an allocation.
const CALLERS: usize = 4;
/// Names of the C library's functions that allocate memory.
const ALLOCATORS: [&str; 5] = ["malloc", "calloc", "realloc", "aligned_alloc", "memalign"];

/// DWARF numbers of the registers with the first two arguments of a function.
const RDI: usize = 5;
const RSI: usize = 4;

/// A write past the end of a heap block.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Overflow {
    /// The allocation of the block past whose end the run has written.
    pub block: Allocated,
    /// What wrote over the word after the block in which the allocator keeps a size.
    pub writer: Writer,
    /// Whether the run no longer fails in the same way when that word keeps its value.
    pub is_averted: bool,
}

/// An allocation of a heap block.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Allocated {
    /// Number of bytes that the program asked for.
    pub size: u64,
    /// Addresses of the calls in the program's own code that led to the allocation, innermost
    /// first.
    pub calls: Vec<u64>,
    /// The call of the allocating function, by which the size can be followed back.
    pub asked: AllocationCall,
}

/// A call of a function that allocates memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AllocationCall {
    /// Address to which the function returns.
    pub back: u64,
    /// How often the run had called an allocating function from there, this time included.
    pub nth: u64,
    /// DWARF numbers of the registers with the arguments that make the size.
    pub sizes: &'static [usize],
}

/// A call of an allocating function that has not returned yet.
struct Pending {
    stack_pointer: u64,
    size: u64,
    asked: AllocationCall,
}

/// What a run has shown up to now of a heap block: its allocation, and the write past its end.
#[derive(Default)]
struct Followed {
    pending: Vec<Pending>,
    /// Numbers of calls of allocating functions, by the address to which they return.
    calls: HashMap<u64, u64>,
    allocated: Option<Allocated>,
    overwritten: Option<(Allocated, Writer)>,
    value: Option<u64>,
}

impl Engine {
    /// Finds the heap block past whose end the failing run has written first; `None` where the
    /// words of the allocator are as it left them, or the block's allocation was not seen.
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
        let address = |name: &&str| library_symbol(&run.process, name);
        let allocators: Vec<u64> = ALLOCATORS.iter().filter_map(address).collect();
        drop(run);
        if allocators.is_empty() {
            return Ok(None);
        }
        let Some((block, writer)) = self.overwritten(damaged, &allocators)? else {
            return Ok(None);
        };
        let is_averted = !fails(&self.kept(damaged)?);
        Ok(Some(Overflow {
            block,
            writer,
            is_averted,
        }))
    }

    /// Starts the failing run with a watchpoint on the allocator's word that gets overwritten;
    /// `None` where the program's first instruction is not known.
    fn watching(&mut self, damaged: Damaged) -> Result<Option<Run>, EngineError> {
        let run = self.at_entry(Side::Failing)?;
        if let Some(run) = &run {
            run.process.watch(0, damaged.word, 8)?;
        }
        Ok(run)
    }

    /// Returns the last allocation of the damaged block, and the first write after it that has
    /// overwritten the word after the block; `None` where these were not seen.
    fn overwritten(
        &mut self,
        damaged: Damaged,
        allocators: &[u64],
    ) -> Result<Option<(Allocated, Writer)>, EngineError> {
        let Some(mut run) = self.watching(damaged)? else {
            return Ok(None);
        };
        for allocator in allocators {
            run.process.set_breakpoint(*allocator)?;
        }
        let mut known = Followed::default();
        for _ in 0..MOST_STOPS {
            self.check_time()?;
            match self.resume(&mut run.process, Pace::SystemCalls)? {
                Next::Ended(_) => return Ok(known.overwritten),
                Next::Breakpoint(registers) => {
                    let at = allocators.iter().position(|it| *it == registers.rip);
                    self.allocating(&mut run, &registers, at, damaged, &mut known)?;
                    run.process.step_over(registers.rip)?;
                }
                Next::Other(stop) => self.compare(&mut run, &stop, damaged, &mut known)?,
            }
        }
        Ok(None)
    }

    /// Records in `known` a call of an allocating function, or the return from one.
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
        // Calls that a `longjmp` has left never return.
        known.pending.retain(|it| it.stack_pointer >= registers.rsp);
        let is_returned = |it: &mut Pending| it.stack_pointer == registers.rsp;
        if let Some(call) = known.pending.pop_if(is_returned)
            && registers.rax == damaged.block
            && damaged.block.saturating_add(call.size) <= damaged.word
        {
            let frames = self.frames(&mut run.process)?;
            let calls = self.own_calls(&frames);
            known.allocated = Some(Allocated {
                size: call.size,
                calls,
                asked: call.asked,
            });
            known.overwritten = None;
        }
        Ok(())
    }

    /// Returns the addresses of the calls on the stack that are in the program's own code,
    /// innermost first; those in headers of a standard library only where there are no others.
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

    /// Records in `known` a write to the watched word of the allocator that has made it a size that
    /// no block can have.
    fn compare(
        &mut self,
        run: &mut Run,
        stop: &Stop,
        damaged: Damaged,
        known: &mut Followed,
    ) -> Result<(), EngineError> {
        let now = run.process.word(damaged.word);
        let before = std::mem::replace(&mut known.value, now);
        let (Some(before), Some(now)) = (before, now) else {
            return Ok(());
        };
        match (is_size(before), is_size(now)) {
            (true, false) => {
                let by_kernel = matches!(stop, Stop::SystemCall);
                let writer =
                    self.describe(&mut run.process, Side::Failing, damaged.word, by_kernel)?;
                known.overwritten = known.allocated.clone().zip(writer);
            }
            (false, true) => known.overwritten = None,
            _ => {}
        }
        Ok(())
    }

    /// Runs the failing run to its end, and restores the allocator's word whenever it is
    /// overwritten by a value that is no size. Returns how the run ended.
    fn kept(&mut self, damaged: Damaged) -> Result<Ending, EngineError> {
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
                (Some(before), Some(now)) if is_size(before) && !is_size(now) => {
                    run.process.write(damaged.word, &u64::to_le_bytes(before))?;
                }
                _ => value = now,
            }
        }
    }
}
