//! Finds a heap block that the program frees after it has copied its content to a new block that is
//! at least as long, although the old one is still read: as through a reference to an element of a
//! vector that has grown since.

use std::collections::VecDeque;
use std::ops::Range;

use ddfuzz_triage::memory::Memory;

use super::freed::Lost;
use super::moved::Allocators;
use super::origin::{History, Origin};
use super::run::{Next, Pace, Run, STOPS};
use super::watchdog::TimeLimit;
use super::{Ending, Engine, EngineError, Side, if_supported};

/// Maximum number of stops of a run at `free`, at allocating functions and at their returns; in a
/// run with more stops, no freed block is found.
const MOST_STOPS: usize = 20_000;
/// Number of allocations before a call of `free` among which the block is searched for to which the
/// content of the freed block was copied.
const RECENT: usize = 32;
/// Maximum number of values whose memory is examined: the value that the run fails with, and values
/// from which it was made.
const VALUES: usize = 3;

/// A heap block that the failing run has freed and whose memory it has not allocated again, with
/// the call of `free` and the block to which the content may have been copied.
struct Freed {
    /// Number, from 1, of the call that has freed the block, among all calls of `free` in the run.
    nth: u64,
    /// Addresses of the calls in the program's own code that led to the call of `free`, innermost
    /// first.
    calls: Vec<u64>,
    /// Range of addresses of the block.
    block: Range<u64>,
    /// Address of the block to which the content may have been copied: the latest one, among those
    /// allocated shortly before the call, that is at least as long as the freed block.
    new: u64,
}

/// The heap blocks that a run has allocated and freed so far.
#[derive(Default)]
struct Followed {
    /// Calls of allocating functions that have not returned yet: for each, the stack pointer after
    /// its return, and the requested size in bytes.
    pending: Vec<(u64, u64)>,
    /// The latest allocations, at most [`RECENT`], the newest first: the address of each block, and
    /// the size in bytes that was requested.
    recent: VecDeque<(u64, u64)>,
    frees: u64,
    freed: Option<Freed>,
}

impl Engine {
    /// Finds the call of `free` that frees a heap block after the program has copied its content to
    /// a new block, although the failing run reads from the old block later: the value that it
    /// fails with, or one from which this value was made. Tests this by a run in which the call is
    /// replaced by writing the content of the new block to the old one; the run may take a multiple
    /// of `limit`, and `averts` tells by its end whether it does not fail. `None` if there is no
    /// such call, if the run fails in each test, or if the program has AddressSanitizer.
    ///
    /// # Errors
    /// When the runs cannot be made.
    pub(crate) fn copied_early(
        &mut self,
        history: &History,
        limit: TimeLimit,
        averts: impl Fn(&Ending) -> bool,
    ) -> Result<Option<Lost>, EngineError> {
        if self.has_asan {
            return Ok(None);
        }
        let Some(allocators) = self.allocators()? else {
            return Ok(None);
        };
        let last = history.origin.iter();
        let origins = last.flat_map(|it: &Origin| std::iter::once(it).chain(&it.earlier));
        let mut tried: Vec<Range<u64>> = Vec::new();
        let read = origins.filter_map(|it| it.memory.map(|((at, _), _)| at));
        for at in read.take(VALUES) {
            if tried.iter().any(|it| it.contains(&at)) {
                continue;
            }
            let Some(freed) = if_supported(self.last_freed(allocators, at))? else {
                continue;
            };
            tried.push(freed.block.clone());
            let ending = self.with_content_kept(allocators.free, &freed, limit)?;
            if freed.calls.is_empty() || !ending.as_ref().is_some_and(&averts) {
                continue;
            }
            let used = self.used_after_free(freed.nth)?.unwrap_or_default();
            return Ok(Some(Lost {
                calls: freed.calls,
                used,
                together: 1,
                is_move: true,
            }));
        }
        Ok(None)
    }

    /// Makes the failing run to its end. Returns the block, with the address `at` in it, that the
    /// run has freed last. `None` if there is no such block, if the run has allocated the address
    /// `at` again afterwards, or if none of the last [`RECENT`] allocations before the call of
    /// `free` was at least as long as the block; also if the run stops more than [`MOST_STOPS`]
    /// times.
    fn last_freed(
        &mut self,
        allocators: Allocators,
        at: u64,
    ) -> Result<Option<Freed>, EngineError> {
        let Some(mut run) = self.at_entry(Side::Failing)? else {
            return Ok(None);
        };
        for function in [allocators.malloc, allocators.calloc, allocators.free] {
            run.process.set_breakpoint(function)?;
        }
        let mut known = Followed::default();
        for _ in 0..MOST_STOPS {
            self.check_time()?;
            match self.resume(&mut run.process, Pace::Free)? {
                Next::Ended(_) => return Ok(known.freed),
                Next::Other(_) => {}
                Next::Breakpoint(registers) => {
                    let here = registers.rip;
                    if here == allocators.free {
                        known.frees += 1;
                        if let Some((block, new)) = known.frees_copied(&mut run, registers.rdi, at)
                        {
                            let frames = self.frames(&mut run.process)?;
                            known.freed = Some(Freed {
                                nth: known.frees,
                                calls: self.own_calls(&frames),
                                block,
                                new,
                            });
                        }
                    } else if [allocators.malloc, allocators.calloc].contains(&here) {
                        let size = match here == allocators.malloc {
                            true => registers.rdi,
                            false => registers.rdi.saturating_mul(registers.rsi),
                        };
                        if let Some(back) = run.process.word(registers.rsp) {
                            run.process.set_breakpoint(back)?;
                            known.pending.push((registers.rsp + 8, size));
                        }
                    } else {
                        known.returned(registers.rsp, registers.rax, at);
                    }
                    run.process.step_over(here)?;
                }
            }
        }
        Ok(None)
    }

    /// Makes the failing run without the call of `free` that frees the block `freed`: in place of
    /// the call, writes the content of the new block to the old one, once. Returns how the run
    /// ends; `None` if the run does not reach the call. `free`: address of the function.
    fn with_content_kept(
        &mut self,
        free: u64,
        freed: &Freed,
        limit: TimeLimit,
    ) -> Result<Option<Ending>, EngineError> {
        self.changed_runs += 1;
        let Some(mut run) = self.at_entry(Side::Failing)? else {
            return Ok(None);
        };
        run.process.set_breakpoint(free)?;
        let _limit = run.process.limit(limit.times(STOPS));
        let mut calls = 0;
        loop {
            self.check_time()?;
            match self.resume(&mut run.process, Pace::Free)? {
                Next::Ended(ending) => return Ok((calls >= freed.nth).then_some(*ending)),
                Next::Other(_) => {}
                Next::Breakpoint(registers) => {
                    calls += 1;
                    if calls < freed.nth {
                        run.process.step_over(registers.rip)?;
                        continue;
                    }
                    let length = (freed.block.end - freed.block.start) as usize;
                    let content = run.process.bytes(freed.new, length);
                    run.process.write(freed.block.start, &content)?;
                    run.process.remove_breakpoints()?;
                    run.process.return_at_once(registers, registers.rax)?;
                }
            }
        }
    }
}

impl Followed {
    /// Records that a function has returned `value`, and that the stack pointer after the return is
    /// `stack_pointer`. If the function is an allocating one, records the new block; if this block
    /// contains the address `at`, forgets the freed block.
    fn returned(&mut self, stack_pointer: u64, value: u64, at: u64) {
        // Calls that a `longjmp` has left never return.
        self.pending.retain(|it| it.0 >= stack_pointer);
        let Some((_, size)) = self.pending.pop_if(|it| it.0 == stack_pointer) else {
            return;
        };
        if (value..value.saturating_add(size)).contains(&at) {
            self.freed = None;
        }
        self.recent.truncate(RECENT - 1);
        self.recent.push_front((value, size));
    }

    /// Returns the addresses of the heap block that the present call of `free` frees at the address
    /// `block`, and the address of the latest other block, among the last [`RECENT`] allocated
    /// ones, that is at least as long. `None` if the freed block does not contain the address `at`,
    /// or there is no such other block.
    fn frees_copied(&self, run: &mut Run, block: u64, at: u64) -> Option<(Range<u64>, u64)> {
        if block == 0 || block > at {
            return None;
        }
        // The allocator keeps the size of its blocks before them.
        let size = run.process.word(block.wrapping_sub(8)).unwrap_or(0) & !7;
        let usable = size.saturating_sub(8);
        let is_longer = |it: &&(u64, u64)| it.0 != block && it.1 >= usable;
        let new = self.recent.iter().find(is_longer)?.0;
        let block = block..block.saturating_add(usable);
        block.contains(&at).then_some((block, new))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_allocated_again_is_not_freed() {
        let mut known = Followed {
            pending: vec![(0x2000, 8), (0x1000, 64)],
            freed: Some(Freed {
                nth: 1,
                calls: vec![1],
                block: 0x5000..0x5020,
                new: 0x6000,
            }),
            ..Followed::default()
        };
        // Another function's return.
        known.returned(0xf00, 0x5000, 0x5008);
        assert!(known.freed.is_some() && known.recent.is_empty());
        known.returned(0x1000, 0x7000, 0x5008);
        assert!(known.freed.is_some() && known.recent == [(0x7000, 64)]);
        known.returned(0x2000, 0x5001, 0x5008);
        assert!(known.freed.is_none() && known.recent[0] == (0x5001, 8));
    }
}
