//! Finds a call of `realloc` that moves a heap block while the program keeps a pointer to its old
//! address: in runs in which some calls of `realloc` leave their block where it is.

use std::ops::Range;

use ddfuzz_triage::memory::Memory;
use libc::user_regs_struct;

use super::freed::Lost;
use super::run::{Next, Pace, Run, STOPS};
use super::{Ending, Engine, EngineError, Side};

/// Largest number of times that a run may stop at allocating functions in the search for moved heap
/// blocks; after so many stops, the search has no result.
const MOST_STOPS: usize = 20_000;
/// Largest size, in bytes, of a request for a heap block that is replaced by a request for a longer
/// block, so that later calls of `realloc` find room to grow the block in place.
const LARGEST: u64 = 1 << 16;

/// Addresses in the process of the C library's functions for heap blocks.
#[derive(Clone, Copy)]
pub(super) struct Allocators {
    pub malloc: u64,
    pub calloc: u64,
    realloc: u64,
    pub free: u64,
    /// Whether the old block is freed when its content has been moved.
    frees: bool,
}

/// The result of a run in which the first calls of `realloc` moved their heap blocks and the later
/// ones did not.
struct Moved {
    /// How the run has ended; `None` if it was stopped before its end.
    ending: Option<Ending>,
    /// Number of calls of `realloc` that the run has made with a block and a new size, so that they
    /// could move the block.
    calls: u64,
    /// Addresses of the calls, in the program's own code, that led to the last moving `realloc`,
    /// innermost first.
    from: Vec<u64>,
    /// Old addresses of the last block that was moved; `None` if none was moved.
    block: Option<Range<u64>>,
}

impl Engine {
    /// Finds the call of `realloc` because of which the failing run fails: the run fails if this
    /// call moves its block (`fails` tells this from the run's end), and does not fail if no call
    /// moves its block (`averts` tells this). `None` if there is no such call. In these runs,
    /// blocks are allocated longer than requested, so that they can grow in place; a moved block is
    /// freed at its old address, or kept if the run does not fail when it is freed.
    ///
    /// # Errors
    /// When the runs cannot be made.
    pub fn moved_early(
        &mut self,
        fails: impl Fn(&Ending) -> bool,
        averts: impl Fn(&Ending) -> bool,
    ) -> Result<Option<Lost>, EngineError> {
        let Some(mut allocators) = self.allocators()? else {
            return Ok(None);
        };
        let Some(mut all) = self.with_moves(allocators, u64::MAX)? else {
            return Ok(None);
        };
        if all.calls > 0 && !all.ending.as_ref().is_some_and(&fails) {
            allocators.frees = false;
            match self.with_moves(allocators, u64::MAX)? {
                Some(it) => all = it,
                None => return Ok(None),
            }
        }
        if all.calls == 0 || !all.ending.as_ref().is_some_and(&fails) {
            return Ok(None);
        }
        let none = self.with_moves(allocators, 0)?;
        if !none.is_some_and(|it| it.ending.as_ref().is_some_and(&averts)) {
            return Ok(None);
        }
        let (mut averted, mut failing, mut last) = (0, all.calls, all);
        while failing - averted > 1 {
            let middle = averted + (failing - averted) / 2;
            match self.with_moves(allocators, middle)? {
                Some(it) if it.ending.as_ref().is_some_and(&fails) => {
                    (failing, last) = (middle, it)
                }
                _ => averted = middle,
            }
        }
        if last.from.is_empty() {
            return Ok(None);
        }
        let used = self.used_after_move(allocators, failing)?;
        let calls = last.from;
        Ok(Some(Lost {
            calls,
            used,
            together: 1,
            is_move: true,
        }))
    }

    /// Finds the C library's functions for heap blocks; `None` if the program does not use them.
    pub(super) fn allocators(&mut self) -> Result<Option<Allocators>, EngineError> {
        let Some(run) = self.at_entry(Side::Failing)? else {
            return Ok(None);
        };
        let address = |name| self.runtime_symbol(&run.process, name);
        let functions = [address("malloc"), address("calloc"), address("realloc")];
        let [Some(malloc), Some(calloc), Some(realloc)] = functions else {
            return Ok(None);
        };
        Ok(address("free").map(|free| Allocators {
            malloc,
            calloc,
            realloc,
            free,
            frees: true,
        }))
    }

    /// Makes the failing run and lets the first `moving` calls of `realloc` move their blocks, and
    /// the others keep them in place. Returns how the run ended, and what was moved; `None` if the
    /// run stops too often at calls of allocating functions.
    fn with_moves(
        &mut self,
        allocators: Allocators,
        moving: u64,
    ) -> Result<Option<Moved>, EngineError> {
        let Some(mut run) = self.at_entry(Side::Failing)? else {
            return Ok(None);
        };
        let _limit = run.process.limit(self.test_limit.times(STOPS));
        self.moving(&mut run, allocators, moving, u64::MAX)
    }

    /// Returns the first use of a moved block at its old address, after the `nth` call of
    /// `realloc`: addresses, in the program's own code, of the use and of the calls that led to it,
    /// innermost first; empty if no use is seen.
    fn used_after_move(
        &mut self,
        allocators: Allocators,
        nth: u64,
    ) -> Result<Vec<u64>, EngineError> {
        let Some(mut run) = self.at_entry(Side::Failing)? else {
            return Ok(Vec::new());
        };
        let moved = self.moving(&mut run, allocators, nth, nth)?;
        let Some(block) = moved.and_then(|it| it.block) else {
            return Ok(Vec::new());
        };
        run.process.remove_breakpoints()?;
        self.first_use(&mut run, block)
    }

    /// Continues a run in which the first `moving` calls of `realloc` are made to move their
    /// blocks, until the run ends or the call with the number `last` has moved its block. Returns
    /// what was moved and how the run ended; `None` if there are too many stops.
    fn moving(
        &mut self,
        run: &mut Run,
        allocators: Allocators,
        moving: u64,
        last: u64,
    ) -> Result<Option<Moved>, EngineError> {
        let realloc = allocators.realloc;
        for function in [allocators.malloc, allocators.calloc, realloc] {
            run.process.set_breakpoint(function)?;
        }
        let (mut calls, mut from, mut block) = (0, Vec::new(), None);
        for _ in 0..MOST_STOPS {
            self.check_time()?;
            let mut registers = match self.resume(&mut run.process, Pace::Free)? {
                Next::Ended(ending) => {
                    let ending = *ending;
                    return Ok(Some(Moved {
                        ending: Some(ending),
                        calls,
                        from,
                        block,
                    }));
                }
                Next::Breakpoint(registers) => registers,
                Next::Other(_) => continue,
            };
            let at = registers.rip;
            if at == realloc && registers.rdi != 0 && registers.rsi != 0 {
                calls += 1;
                if calls <= moving {
                    let frames = self.frames(&mut run.process)?;
                    from = self.own_calls(&frames);
                    let moved = registers.rdi..registers.rdi + usable(run, registers.rdi);
                    if move_block(run, registers, allocators)?.is_some() {
                        block = Some(moved);
                        if calls == last {
                            return Ok(Some(Moved {
                                ending: None,
                                calls,
                                from,
                                block,
                            }));
                        }
                        continue;
                    }
                } else if registers.rsi <= usable(run, registers.rdi) {
                    run.process.return_at_once(registers, registers.rdi)?;
                    continue;
                }
            } else {
                ask_for_more(&mut registers, allocators);
            }
            run.process.set_registers(registers)?;
            run.process.step_over(at)?;
        }
        Ok(None)
    }
}

/// Returns the size to request instead of `size`: with room for the heap block to grow to 16 times
/// its size.
fn longer(size: u64) -> u64 {
    match size {
        1..=LARGEST => size * 16 + 64,
        other => other,
    }
}

/// Changes the argument of a call that is about to enter an allocating function, so that it
/// requests a longer block.
fn ask_for_more(registers: &mut user_regs_struct, allocators: Allocators) {
    if registers.rip == allocators.malloc {
        registers.rdi = longer(registers.rdi);
    } else if registers.rip == allocators.calloc {
        let size = registers.rdi.saturating_mul(registers.rsi);
        (registers.rdi, registers.rsi) = (1, longer(size));
    } else {
        registers.rsi = longer(registers.rsi);
    }
}

/// Returns the number of bytes that a heap block of glibc's allocator can hold.
fn usable(run: &mut Run, block: u64) -> u64 {
    let size = run.process.word(block.wrapping_sub(8)).unwrap_or(0);
    (size & !7).saturating_sub(16)
}

/// Executes a call of `realloc` in place of the C library, so that it moves the block: allocates a
/// new block, copies the content, frees the old block if `allocators.frees` is set, and lets the
/// run go on after the call, with the new address as its result. `registers` are those at the call.
/// `Some` if this was done; `None` if there is no memory for the new block: the run is then
/// unchanged.
fn move_block(
    run: &mut Run,
    registers: user_regs_struct,
    allocators: Allocators,
) -> Result<Option<()>, EngineError> {
    let (block, size) = (registers.rdi, registers.rsi);
    run.process.remove_breakpoint(allocators.malloc)?;
    let new = run.process.call(allocators.malloc, longer(size))?;
    run.process.set_breakpoint(allocators.malloc)?;
    let Some(new) = new.filter(|new| *new != 0) else {
        return Ok(None);
    };
    let length = usable(run, block).min(size) as usize;
    let content = run.process.bytes(block, length);
    run.process.write(new, &content)?;
    if allocators.frees {
        run.process.call(allocators.free, block)?;
    }
    run.process.return_at_once(registers, new)?;
    Ok(Some(()))
}
