//! Heap blocks that are moved while a pointer to them is kept: runs in which some calls of `realloc`
//! leave their block where it is.

use ddfuzz_triage::memory::Memory;
use libc::user_regs_struct;

use super::prepared::library_symbol;
use super::run::{Next, Pace, Run};
use super::{Ending, Engine, EngineError, Side};

/// Largest number of stops of a run.
const MOST_STOPS: usize = 20_000;
/// Largest block that is made longer than asked for, in bytes.
const LARGEST: u64 = 1 << 16;

/// Addresses of functions of the C library.
#[derive(Clone, Copy)]
struct Allocators {
    malloc: u64,
    calloc: u64,
    realloc: u64,
    free: u64,
}

/// How a run has ended in which some calls of `realloc` moved their blocks and others did not.
struct Moved {
    ending: Ending,
    /// Number of calls that could move a block.
    calls: u64,
    /// Calls in the program's own code that led to the last one that moved its block, innermost first.
    from: Vec<u64>,
}

impl Engine {
    /// Finds the call of `realloc` without whose move of a block the failing run ends as `averts` says,
    /// and with which it fails as `fails` says: the calls in the program's own code that led to it,
    /// innermost first. `None` where there is none. All blocks are longer than asked for, so that they
    /// have room to grow.
    ///
    /// # Errors
    /// When the runs cannot be made.
    pub fn moved_early(
        &mut self,
        fails: impl Fn(&Ending) -> bool,
        averts: impl Fn(&Ending) -> bool,
    ) -> Result<Option<Vec<u64>>, EngineError> {
        let Some(allocators) = self.allocators()? else {
            return Ok(None);
        };
        let Some(all) = self.with_moves(allocators, u64::MAX)? else {
            return Ok(None);
        };
        if all.calls == 0 || !fails(&all.ending) {
            return Ok(None);
        }
        let none = self.with_moves(allocators, 0)?;
        if !none.is_some_and(|it| averts(&it.ending)) {
            return Ok(None);
        }
        let (mut averted, mut failing, mut from) = (0, all.calls, all.from);
        while failing - averted > 1 {
            let middle = averted + (failing - averted) / 2;
            match self.with_moves(allocators, middle)? {
                Some(it) if fails(&it.ending) => (failing, from) = (middle, it.from),
                _ => averted = middle,
            }
        }
        Ok(Some(from).filter(|calls| !calls.is_empty()))
    }

    /// Finds the functions of the C library; `None` where the program does not use them.
    fn allocators(&mut self) -> Result<Option<Allocators>, EngineError> {
        let Some(run) = self.at_entry(Side::Failing)? else {
            return Ok(None);
        };
        let address = |name| library_symbol(&run.process, name);
        let functions = [address("malloc"), address("calloc"), address("realloc")];
        let [Some(malloc), Some(calloc), Some(realloc)] = functions else {
            return Ok(None);
        };
        Ok(address("free").map(|free| Allocators {
            malloc,
            calloc,
            realloc,
            free,
        }))
    }

    /// Makes the failing run, in which the first calls of `realloc`, this many, move their blocks, and
    /// the others leave them where they are; `None` where there are too many calls.
    fn with_moves(
        &mut self,
        allocators: Allocators,
        moving: u64,
    ) -> Result<Option<Moved>, EngineError> {
        let Some(mut run) = self.at_entry(Side::Failing)? else {
            return Ok(None);
        };
        let Allocators {
            malloc,
            calloc,
            realloc,
            ..
        } = allocators;
        for function in [malloc, calloc, realloc] {
            run.process.set_breakpoint(function)?;
        }
        let (mut calls, mut from) = (0, Vec::new());
        for _ in 0..MOST_STOPS {
            self.check_time()?;
            let mut registers = match self.resume(&mut run.process, Pace::Free)? {
                Next::Ended(ending) => {
                    let ending = *ending;
                    return Ok(Some(Moved {
                        ending,
                        calls,
                        from,
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
                    if move_block(&mut run, registers, allocators)?.is_some() {
                        continue;
                    }
                } else if registers.rsi <= usable(&mut run, registers.rdi) {
                    run.process.return_at_once(registers, registers.rdi)?;
                    continue;
                }
            } else if at == malloc {
                registers.rdi = longer(registers.rdi);
            } else if at == calloc {
                let size = registers.rdi.saturating_mul(registers.rsi);
                (registers.rdi, registers.rsi) = (1, longer(size));
            } else {
                registers.rsi = longer(registers.rsi);
            }
            run.process.set_registers(registers)?;
            run.process.step_over(at)?;
        }
        Ok(None)
    }
}

/// The size that is asked for in place of another one: room for a block that grows to its sixteenfold.
fn longer(size: u64) -> u64 {
    match size {
        1..=LARGEST => size * 16 + 64,
        other => other,
    }
}

/// Number of bytes that a block of glibc has.
fn usable(run: &mut Run, block: u64) -> u64 {
    let size = run.process.word(block.wrapping_sub(8)).unwrap_or(0);
    (size & !7).saturating_sub(16)
}

/// Does what `realloc` does when it moves a block, and returns from its call; `None` where there is no
/// memory, and nothing was done.
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
    run.process.call(allocators.free, block)?;
    run.process.return_at_once(registers, new)?;
    Ok(Some(()))
}
