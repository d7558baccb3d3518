//! Heap blocks that are freed too early: runs in which calls of `free` do nothing.

use ddfuzz_triage::memory::Memory;
use libc::user_regs_struct;

use super::instructions::{ARGUMENTS, Executed};
use super::process::by_number;
use super::recorded::Recorded;
use super::run::{Next, Pace, Run, STOPS};
use super::{Ending, Engine, EngineError, Side};
use crate::dwarf::frames::REGISTERS;

/// Maximum number of calls of `free` in a run, for the search for the call that frees a block too
/// early; a run with more calls is not searched.
const MOST_CALLS: u64 = 20_000;
/// Largest number of successive calls of `free` that one run leaves out together, to find calls
/// without which the run does not fail.
const TOGETHER: u64 = 4;
/// Names of the functions that free a heap block: that of the C library, and those of C++.
const FREEING: [&str; 5] = ["free", "_ZdlPv", "_ZdlPvm", "_ZdaPv", "_ZdaPvm"];
/// Name of the C library's function that moves a heap block, and frees it at its old address.
const MOVING: &str = "realloc";
/// Machine code of the x86 instruction `ret`, which returns from a function.
const RETURN: u8 = 0xc3;

/// A call of `free`, or of `realloc` that moves a heap block, after which the program still uses
/// the block at its old address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lost {
    /// Addresses of the calls in the program's own code that led to the call, innermost first.
    pub calls: Vec<u64>,
    /// Addresses, in the program's own code, of the first use of the block after the call, and of
    /// the calls that led to that use, innermost first; empty if no use is seen.
    pub used: Vec<u64>,
    /// Number of successive calls, this one among them, that do nothing in the run that does not
    /// fail; 0 if the run without this call fails in another way.
    pub together: usize,
    /// Whether the call is one of `realloc`.
    pub is_move: bool,
}

/// Largest number of instructions after the call of `free` or `realloc` among which a use of the
/// freed or moved heap block is searched for.
const MOST_STEPS: usize = 20_000;

/// The result of a run in which some calls of `free` did nothing.
struct Skipped {
    ending: Ending,
    /// Number of all calls of `free` in the run.
    calls: u64,
    /// Addresses of the calls in the program's own code that led to the last `free` that did
    /// nothing, innermost first.
    from: Vec<u64>,
}

/// Addresses in the process of the functions that free heap blocks.
struct Frees {
    all: Vec<u64>,
    /// The one among `all` that also moves a block: `realloc`. `None` where it is not watched.
    moving: Option<u64>,
}

impl Frees {
    /// Returns true if the call of one of these functions, at whose beginning the run has stopped
    /// with `registers`, counts as one that frees a block. Only a call of the watched `realloc`
    /// with a null pointer does not: it just allocates.
    fn is_free(&self, registers: &user_regs_struct) -> bool {
        self.moving != Some(registers.rip) || registers.rdi != 0
    }
}

/// Returns the ranges of at most [`TOGETHER`] successive calls, two at least, that have the call with the
/// number `nth` (from 0) as their first or last one; the shortest ones first.
fn around(nth: u64) -> impl Iterator<Item = std::ops::Range<u64>> {
    (1..TOGETHER).flat_map(move |more| {
        let before = nth.checked_sub(more).map(|from| from..nth + 1);
        before.into_iter().chain(Some(nth..nth + 1 + more))
    })
}

/// Returns true if the function that has just returned has returned an address in `memory`, as
/// `malloc` does when it uses a freed block again.
fn is_returned(run: &Run, memory: &std::ops::Range<u64>) -> Result<bool, EngineError> {
    let registers = run.process.registers()?;
    Ok(memory.contains(&registers.rax))
}

impl Engine {
    /// Finds the call of `free` without which the failing run does not fail; `averts` tells from
    /// the end of a run whether it did not fail. If only several successive calls together (up to
    /// four) avert the failure when they do nothing, returns the last of them. `None` if there is
    /// no such call, or if the run fails inside it.
    ///
    /// # Errors
    /// When the runs cannot be made.
    pub fn freed_early(
        &mut self,
        averts: impl Fn(&Ending) -> bool,
    ) -> Result<Option<Lost>, EngineError> {
        let Some((mut run, free)) = self.before_free()? else {
            return Ok(None);
        };
        for free in free.all {
            run.process.write(free, &[RETURN])?;
        }
        // With what it does not free, the run may go on without end.
        let _limit = run.process.limit(self.test_limit);
        let ending = loop {
            self.check_time()?;
            if let Next::Ended(ending) = self.resume(&mut run.process, Pace::Free)? {
                break ending;
            }
        };
        drop(run);
        if !averts(&ending) {
            return Ok(None);
        }
        let Some(all) = self.without_frees(0..0)? else {
            return Ok(None);
        };
        // Without the calls before `failing` it fails, without those before `averted` it does not.
        let (mut failing, mut averted) = (0, all.calls);
        while averted - failing > 1 {
            let middle = failing + (averted - failing) / 2;
            match self.without_frees(0..middle)? {
                Some(it) if averts(&it.ending) => averted = middle,
                _ => failing = middle,
            }
        }
        if averted == 0 {
            return Ok(None);
        }
        // What is freed with its parts takes several calls.
        for count in (1..=TOGETHER).filter(|count| *count <= averted) {
            let few = self.without_frees(averted - count..averted)?;
            if let Some(few) = few.filter(|it| averts(&it.ending)) {
                let Some(used) = self.used_after_free(averted)? else {
                    return Ok(None);
                };
                let calls = few.from;
                return Ok((!calls.is_empty()).then_some(Lost {
                    calls,
                    used,
                    together: count as usize,
                    is_move: false,
                }));
            }
        }
        Ok(None)
    }

    /// Finds the call that frees the heap block at the address `block`, which AddressSanitizer
    /// reports to be used after that or, if `is_again`, to be freed a second time at the end of the
    /// failing run. `averts` is true for a run's end without failure, `reports` for one with the same
    /// report. `None` where there is no such call, or where the same is reported without it. Several
    /// calls together are tried if the run fails in another way without this one, as where the parts of
    /// a record are freed with it.
    ///
    /// # Errors
    /// When the runs cannot be made.
    pub(crate) fn reported_free(
        &mut self,
        (block, is_again): (u64, bool),
        averts: impl Fn(&Ending) -> bool,
        reports: impl Fn(&Ending) -> bool,
    ) -> Result<Option<Lost>, EngineError> {
        let Some((nth, is_move)) = self.last_free(block, is_again)? else {
            return Ok(None);
        };
        let without = self.without_frees(nth..nth + 1)?;
        let Some(without) = without.filter(|it| !reports(&it.ending) && !it.from.is_empty()) else {
            return Ok(None);
        };
        let mut together = usize::from(averts(&without.ending));
        if together == 0 {
            for range in around(nth).filter(|it| it.end <= without.calls) {
                let count = range.end - range.start;
                let several = self.without_frees(range)?;
                if several.is_some_and(|it| averts(&it.ending)) {
                    together = count as usize;
                    break;
                }
            }
        }
        Ok(Some(Lost {
            calls: without.from,
            used: Vec::new(),
            together,
            is_move,
        }))
    }

    /// Returns the number (from 0), among all calls that free a block in the failing run, of the
    /// last one that frees the heap block at the address `block`, or of the one before that if
    /// `is_again`, and whether this is a call of `realloc`; `None` if there is no such call.
    fn last_free(
        &mut self,
        block: u64,
        is_again: bool,
    ) -> Result<Option<(u64, bool)>, EngineError> {
        let Some((mut run, frees)) = self.before_free()? else {
            return Ok(None);
        };
        for free in &frees.all {
            run.process.set_breakpoint(*free)?;
        }
        let (mut calls, mut of_block) = (0, Vec::new());
        while calls <= MOST_CALLS {
            self.check_time()?;
            match self.resume(&mut run.process, Pace::Free)? {
                Next::Ended(_) => break,
                Next::Other(_) => {}
                Next::Breakpoint(registers) => {
                    if frees.is_free(&registers) {
                        if registers.rdi == block {
                            of_block.push((calls, frees.moving == Some(registers.rip)));
                        }
                        calls += 1;
                    }
                    run.process.step_over(registers.rip)?;
                }
            }
        }
        if is_again {
            of_block.pop();
        }
        Ok(of_block.pop())
    }

    /// Searches the first use of the block that the failing run frees by its `nth` call of `free`
    /// (from 1). Returns the address of the use and those of the calls that led to it, innermost
    /// first; only those in the program's own code. Empty if no use is seen; `None` if the call of
    /// `free` does not return.
    fn used_after_free(&mut self, nth: u64) -> Result<Option<Vec<u64>>, EngineError> {
        let Some((mut run, frees)) = self.before_free()? else {
            return Ok(Some(Vec::new()));
        };
        for free in frees.all {
            run.process.set_breakpoint(free)?;
        }
        let mut calls = 0;
        loop {
            match self.resume(&mut run.process, Pace::Free)? {
                Next::Ended(_) => return Ok(Some(Vec::new())),
                Next::Other(_) => continue,
                Next::Breakpoint(registers) => {
                    calls += 1;
                    if calls < nth {
                        run.process.step_over(registers.rip)?;
                        continue;
                    }
                    let block = registers.rdi;
                    let size = run.process.word(block.wrapping_sub(8)).unwrap_or(0) & !7;
                    let Some(back) = run.process.word(registers.rsp) else {
                        return Ok(Some(Vec::new()));
                    };
                    run.process.remove_breakpoints()?;
                    run.process.set_breakpoint(back)?;
                    loop {
                        match self.resume(&mut run.process, Pace::Free)? {
                            Next::Ended(_) => return Ok(None),
                            Next::Other(_) => {}
                            Next::Breakpoint(_) => break,
                        }
                    }
                    run.process.remove_breakpoints()?;
                    let block = block..block.saturating_add(size.saturating_sub(16));
                    return self.first_use(&mut run, block).map(Some);
                }
            }
        }
    }

    /// Steps through a run, one instruction at a time, up to the first use of `memory` by the
    /// program's own code: an access, or a call of a library's function with a declared argument
    /// that points into `memory`. Returns the addresses of this instruction and of the calls that
    /// led to it, innermost first. Empty if the run ends first, or if a library's function first
    /// returns an address in `memory`, as `malloc` does when it reuses a block.
    pub(super) fn first_use(
        &mut self,
        run: &mut Run,
        memory: std::ops::Range<u64>,
    ) -> Result<Vec<u64>, EngineError> {
        for _ in 0..MOST_STEPS {
            self.check_time()?;
            let registers = by_number(&run.process.registers()?);
            let code = run.process.bytes(registers[REGISTERS - 1], 15);
            let Some(executed) = Executed::new(&code, registers) else {
                break;
            };
            let uses = executed.uses(&memory);
            let mut frames = match uses || executed.is_call() {
                true => self.frames(&mut run.process)?,
                false => Vec::new(),
            };
            // The instruction has not been executed yet.
            if let Some(innermost) = frames.first_mut() {
                innermost.code += 1;
            }
            if uses {
                return Ok(self.own_calls(&frames));
            }
            let mut recorded = Recorded {
                executed: vec![executed],
                ..Recorded::default()
            };
            let is_over = self.step_once(run, &mut recorded)?.is_none();
            let passes = |number: &usize| memory.contains(&registers[*number]);
            // Other registers may still hold an address that is of no use any more.
            let mut declared = ARGUMENTS.iter().take(recorded.executed[0].parameters);
            if recorded.executed[0].is_library_call() && declared.any(passes) {
                return Ok(self.own_calls(&frames));
            }
            if is_over || recorded.executed[0].is_library_call() && is_returned(run, &memory)? {
                break;
            }
        }
        Ok(Vec::new())
    }

    /// Starts the failing run and stops it at the program's first instruction; returns it with the
    /// address of the C library's `free` or, of a program with AddressSanitizer, those of all
    /// functions in its place, also of C++, and of `realloc`, which moves each block there. `None`
    /// where the program uses no such library.
    fn before_free(&mut self) -> Result<Option<(Run, Frees)>, EngineError> {
        let Some(run) = self.at_entry(Side::Failing)? else {
            return Ok(None);
        };
        // Elsewhere those of C++ call `free`.
        let names = if self.has_asan {
            &FREEING[..]
        } else {
            &FREEING[..1]
        };
        let mut all: Vec<u64> = Vec::new();
        for name in names {
            let found = self.runtime_symbol(&run.process, name);
            all.extend(found.filter(|it| !all.contains(it)));
        }
        let moving = match self.has_asan {
            true => self.runtime_symbol(&run.process, MOVING),
            false => None,
        };
        all.extend(moving);
        Ok((!all.is_empty()).then_some((run, Frees { all, moving })))
    }

    /// Makes the failing run with those calls of `free` doing nothing whose numbers (from 0) are in
    /// `skipped`; `None` where the run makes more than [`MOST_CALLS`] calls.
    fn without_frees(
        &mut self,
        skipped: std::ops::Range<u64>,
    ) -> Result<Option<Skipped>, EngineError> {
        let Some((mut run, frees)) = self.before_free()? else {
            return Ok(None);
        };
        for free in &frees.all {
            run.process.set_breakpoint(*free)?;
        }
        let _limit = run.process.limit(self.test_limit.times(STOPS));
        let (mut calls, mut from) = (0, Vec::new());
        while calls <= MOST_CALLS {
            self.check_time()?;
            match self.resume(&mut run.process, Pace::Free)? {
                Next::Ended(ending) => {
                    let ending = *ending;
                    return Ok(Some(Skipped {
                        ending,
                        calls,
                        from,
                    }));
                }
                Next::Breakpoint(registers) => {
                    let is_skipped = frees.is_free(&registers) && skipped.contains(&calls);
                    calls += u64::from(frees.is_free(&registers));
                    if !is_skipped {
                        run.process.step_over(registers.rip)?;
                        continue;
                    }
                    if calls == skipped.end {
                        let frames = self.frames(&mut run.process)?;
                        from = self.own_calls(&frames);
                    }
                    match frees.moving == Some(registers.rip) {
                        true => self.move_and_keep(&mut run, registers)?,
                        false => run.process.return_at_once(registers, registers.rax)?,
                    }
                }
                Next::Other(_) => {}
            }
        }
        Ok(None)
    }

    /// Executes a call of `realloc`, at whose beginning a run with AddressSanitizer has stopped with
    /// `registers`, in place of the runtime: the content is copied to a new block, and the old one is
    /// not freed. The run goes on after the call.
    fn move_and_keep(
        &mut self,
        run: &mut Run,
        registers: user_regs_struct,
    ) -> Result<(), EngineError> {
        let (block, size) = (registers.rdi, registers.rsi);
        let malloc = self.runtime_symbol(&run.process, "malloc");
        let usable = self.runtime_symbol(&run.process, "malloc_usable_size");
        let mut new = None;
        if let Some((malloc, usable)) = malloc.zip(usable).filter(|_| size > 0) {
            let old = run.process.call(usable, block)?.unwrap_or(0);
            new = run.process.call(malloc, size)?;
            if let Some(new) = new.filter(|it| *it != 0) {
                let content = run.process.bytes(block, old.min(size) as usize);
                run.process.write(new, &content)?;
            }
        }
        run.process.return_at_once(registers, new.unwrap_or(0))?;
        Ok(())
    }
}
