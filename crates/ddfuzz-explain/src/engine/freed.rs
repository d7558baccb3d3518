//! Heap blocks that are freed too early: runs in which calls of `free` do nothing.

use super::prepared::library_symbol;
use super::run::{Next, Pace, Run};
use super::{Ending, Engine, EngineError, Side};

/// Largest number of calls of `free` in a run among which the early one is searched for.
const MOST_CALLS: u64 = 20_000;
/// Largest number of successive calls of `free` that are made to do nothing together.
const TOGETHER: u64 = 4;
/// The x86 instruction `ret`, which returns from a function.
const RETURN: u8 = 0xc3;

/// The result of a run in which some calls of `free` did nothing.
struct Skipped {
    ending: Ending,
    /// Number of all calls of `free` in the run.
    calls: u64,
    /// Addresses of the calls in the program's own code that led to the last `free` that did
    /// nothing, innermost first.
    from: Vec<u64>,
}

impl Engine {
    /// Finds the call of `free`, or the few successive ones, without which the failure does not
    /// happen: `averts` is true for how the failing run then ends. Returns the calls in the
    /// program's own code that led to the last of them, innermost first; `None` where there are
    /// none.
    ///
    /// # Errors
    /// When the runs cannot be made.
    pub fn freed_early(
        &mut self,
        averts: impl Fn(&Ending) -> bool,
    ) -> Result<Option<Vec<u64>>, EngineError> {
        let Some((mut run, free)) = self.before_free()? else {
            return Ok(None);
        };
        run.process.write(free, &[RETURN])?;
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
                return Ok(Some(few.from).filter(|calls| !calls.is_empty()));
            }
        }
        Ok(None)
    }

    /// Starts the failing run and stops it at the program's first instruction; returns it with the
    /// address of the C library's `free`. `None` where the program uses no such library.
    fn before_free(&mut self) -> Result<Option<(Run, u64)>, EngineError> {
        let Some(run) = self.at_entry(Side::Failing)? else {
            return Ok(None);
        };
        let free = library_symbol(&run.process, "free");
        Ok(free.map(|free| (run, free)))
    }

    /// Makes the failing run with some calls of `free`, those whose numbers are in `skipped`, doing
    /// nothing; `None` where there are too many calls.
    fn without_frees(
        &mut self,
        skipped: std::ops::Range<u64>,
    ) -> Result<Option<Skipped>, EngineError> {
        let Some((mut run, free)) = self.before_free()? else {
            return Ok(None);
        };
        run.process.set_breakpoint(free)?;
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
                    calls += 1;
                    if !skipped.contains(&(calls - 1)) {
                        run.process.step_over(registers.rip)?;
                        continue;
                    }
                    if calls == skipped.end {
                        let frames = self.frames(&mut run.process)?;
                        from = self.own_calls(&frames);
                    }
                    run.process.return_at_once(registers, registers.rax)?;
                }
                Next::Other(_) => {}
            }
        }
        Ok(None)
    }
}
