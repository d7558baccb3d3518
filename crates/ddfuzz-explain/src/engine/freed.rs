//! Heap blocks that are freed too early: runs in which calls of `free` do nothing.

use ddfuzz_triage::memory::Memory;
use libc::user_regs_struct;

use super::instructions::{ARGUMENTS, Executed};
use super::overflow::ALLOCATORS;
use super::process::by_number;
use super::recorded::Recorded;
use super::run::{Next, Pace, Run, STOPS};
use super::{Ending, Engine, EngineError, Point, Side};
use crate::dwarf::frames::REGISTERS;

/// Maximum number of calls of `free` in a run, for the search for the call that frees a block too
/// early; a run with more calls is not searched.
const MOST_CALLS: u64 = 20_000;
/// Largest number of successive calls of `free` that one run leaves out together, to find calls
/// without which the run does not fail.
const TOGETHER: u64 = 4;
/// Names of the functions that free a heap block: that of the C library, and those of C++.
const FREEING: [&str; 5] = ["free", "_ZdlPv", "_ZdlPvm", "_ZdaPv", "_ZdaPvm"];
/// Name of the C library's function that moves a heap block to a new address, and frees it at the
/// old one.
const MOVING: &str = "realloc";
/// Machine code of the x86 instruction `ret`, which returns from a function.
const RETURN: u8 = 0xc3;

/// A call that frees or moves a heap block which the program still uses afterwards at its old
/// address: a call of `free`, a call of `realloc` that moves the block, or a call of `free` for a
/// block whose content the program has copied to a new block before.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lost {
    /// Addresses of the calls in the program's own code that led to the call, innermost first.
    pub calls: Vec<u64>,
    /// Addresses, in the program's own code, of the first use of the block after the call, and of
    /// the calls that led to that use, innermost first; empty if no use is seen.
    pub used: Vec<u64>,
    /// Number of successive calls that free blocks, this one among them, that must all be left out
    /// for the run not to fail; 0 if no such number is known, as the run fails in another way
    /// without this call.
    pub together: usize,
    /// Whether the content of the block lives on in a new block: the call is one of `realloc`, or
    /// one of `free` after the content was copied. False for any other call of `free`.
    pub is_move: bool,
}

/// The last allocation and the last free of a heap address before a point of the failing run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Lifetime {
    /// Addresses of the calls in the program's own code that led to the last allocation of a block
    /// at the address, innermost first; empty if it was freed after that, or was not seen.
    pub allocated: Vec<u64>,
    /// Addresses of the calls that led to the last free of a block at the address, innermost first;
    /// empty if no block there was freed.
    pub freed: Vec<u64>,
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

/// The functions of a process that free heap blocks, by their addresses in the process.
struct Frees {
    all: Vec<u64>,
    /// Address of `realloc`, which is also in `all`; `None` where its calls are not watched, as in
    /// a program without AddressSanitizer.
    moving: Option<u64>,
}

impl Frees {
    /// Returns true if a call of one of these functions frees a block; `registers` are those at the
    /// beginning of the called function. Only a call of `realloc` with a null pointer does not: it
    /// just allocates.
    fn is_free(&self, registers: &user_regs_struct) -> bool {
        self.moving != Some(registers.rip) || registers.rdi != 0
    }
}

/// Returns the ranges of two to [`TOGETHER`] successive numbers (from 0) of calls that have the
/// number `nth` as their first or last one; the shortest ranges first.
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

    /// Finds the call that frees the heap block at the address `block` before the bad access that
    /// AddressSanitizer reports at the end of the failing run: a use of the freed block or, if
    /// `is_again`, a second free. As a test, the run is made without this call. If it then fails in
    /// another way, up to four successive calls are left out together, this one first or last,
    /// since the parts of a record may be freed with it. By how a run ends, `averts` tells whether
    /// it does not fail, and `reports` whether the same access is reported. `None` if there is no
    /// such call, or if the same access is reported without it.
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

    /// Finds the last call that frees the heap block at the address `block` in the failing run or,
    /// if `is_again`, the last but one. Returns its number (from 0) among all calls that free a
    /// block, and whether it is a call of `realloc`; `None` if there is no such call.
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

    /// Finds the last allocation and the last free of the heap block that begins at the address
    /// `block`, before the failing run arrives at the point `to`.
    ///
    /// # Errors
    /// When the run cannot be made.
    pub fn lifetime(&mut self, block: u64, to: Point) -> Result<Lifetime, EngineError> {
        let mut life = Lifetime::default();
        let Some((mut run, frees)) = self.before_free()? else {
            return Ok(life);
        };
        let address = |name: &&str| self.runtime_symbol(&run.process, name);
        let allocators: Vec<u64> = ALLOCATORS.iter().filter_map(address).collect();
        for at in frees.all.iter().chain(&allocators).chain([&to.pc]) {
            run.process.set_breakpoint(*at)?;
        }
        // Where the calls of allocating functions return to, with their stack pointers then.
        let mut pending: Vec<(u64, u64)> = Vec::new();
        let mut left = to.nth;
        for _ in 0..MOST_CALLS {
            self.check_time()?;
            let Next::Breakpoint(registers) = self.resume(&mut run.process, Pace::Free)? else {
                return Ok(Lifetime::default());
            };
            let at = registers.rip;
            if frees.is_free(&registers) && frees.all.contains(&at) && registers.rdi == block {
                let frames = self.frames(&mut run.process)?;
                life.freed = self.own_calls(&frames);
                life.allocated.clear();
            }
            // Calls that a `longjmp` has left never return.
            pending.retain(|it| it.1 >= registers.rsp);
            if pending.pop_if(|it| *it == (at, registers.rsp)).is_some() && registers.rax == block {
                let frames = self.frames(&mut run.process)?;
                life.allocated = self.own_calls(&frames);
            }
            if allocators.contains(&at)
                && let Some(back) = run.process.word(registers.rsp)
            {
                run.process.set_breakpoint(back)?;
                pending.push((back, registers.rsp + 8));
            }
            left -= u64::from(at == to.pc);
            if left == 0 {
                return Ok(life);
            }
            run.process.step_over(at)?;
        }
        Ok(Lifetime::default())
    }

    /// Searches the first use of the block that the failing run frees by its `nth` call of `free`
    /// (from 1). Returns the address of the use and those of the calls that led to it, innermost
    /// first; only those in the program's own code. Empty if no use is seen; `None` if the call of
    /// `free` does not return.
    pub(super) fn used_after_free(&mut self, nth: u64) -> Result<Option<Vec<u64>>, EngineError> {
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

    /// Starts the failing run and stops it at the program's first instruction. Returns the stopped
    /// run and the addresses of the functions that free heap blocks. This is `free` of the C
    /// library; in a program with AddressSanitizer, these are the runtime's functions in place of
    /// `free`, of the operators `delete` of C++, and of `realloc`, which always moves the block
    /// there. `None` if the process has no such function, or if its first instruction is not known.
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

    /// Executes a call of `realloc` in place of AddressSanitizer's runtime, without freeing the old
    /// block: copies the content to a new block, and makes the call return the address of the new
    /// block. The run has stopped at the beginning of `realloc` with `registers`, and is then
    /// behind the call.
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
