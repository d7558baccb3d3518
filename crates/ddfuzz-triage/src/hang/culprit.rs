//! Which thread of a run hangs: the one that uses the processor; where none does, the one that the
//! first thread waits for in the end.

use std::time::{Duration, Instant};

use nix::unistd::Pid;

use super::clock::Scheduled;
use crate::capture::Tracer;

/// CPU time by which a thread that runs is told from one that does not.
const TELLING: Duration = Duration::from_millis(20);
/// What runs at all, but only now and then, stays below this.
const NOTHING: Duration = Duration::from_millis(2);
/// The longest time that is looked at it, in wall time: on a busy machine nobody may run for long.
const LONGEST: Duration = Duration::from_millis(300);
/// No more is waited if nobody has run by then.
const QUIET: Duration = Duration::from_millis(40);
/// Threads that use the processor at least one fourth as much as the busiest one run as well.
const SHARE: u32 = 4;
/// A chain of those who wait is not followed further.
const MOST: usize = 64;

impl Tracer<'_> {
    /// The thread that hangs; `None` where there is none any more. `asleep`: nothing runs.
    pub(super) fn culprit(&mut self, asleep: bool) -> nix::Result<Option<Pid>> {
        let threads = self.family.threads();
        if threads.len() <= 1 {
            return Ok(threads.first().map(|(tid, _)| *tid));
        }
        let busiest = if asleep { None } else { self.busiest()? };
        match busiest {
            Some(tid) => Ok(Some(tid)),
            None => self.last_waited_for().map(Some),
        }
    }

    /// Of the threads that run the one that was started last: who waits actively is older than
    /// what it waits for.
    fn busiest(&mut self) -> nix::Result<Option<Pid>> {
        let began = Instant::now();
        let before: Vec<(Pid, Duration)> = self
            .family
            .threads()
            .into_iter()
            .map(|(tid, _)| (tid, Scheduled::of(tid).cpu))
            .collect();
        loop {
            self.let_run(Duration::from_millis(2))?;
            let used =
                |(tid, cpu): &(Pid, Duration)| (*tid, Scheduled::of(*tid).cpu.saturating_sub(*cpu));
            let used: Vec<(Pid, Duration)> = before.iter().map(used).collect();
            let most = used.iter().map(|(_, cpu)| *cpu).max().unwrap_or_default();
            let elapsed = began.elapsed();
            let clear = most >= TELLING || most < NOTHING && elapsed >= QUIET;
            if clear || elapsed >= LONGEST {
                let mut running = used.iter().filter(|(_, cpu)| *cpu * SHARE >= most);
                let last = running.next_back().map(|(tid, _)| *tid);
                return Ok(last.filter(|_| most >= NOTHING));
            }
        }
    }

    /// From the first thread of the program along those who wait for another thread or for a
    /// child.
    fn last_waited_for(&mut self) -> nix::Result<Pid> {
        let mut at = self
            .family
            .threads()
            .first()
            .map_or(self.pid, |(tid, _)| *tid);
        for _ in 0..MOST {
            let halted = self.halt(at)?;
            let next = self.waits_for(at);
            halted.resume();
            match next {
                Some(next) => at = next,
                None => break,
            }
        }
        Ok(at)
    }

    /// Whom a stopped thread waits for, as its system call tells: another thread of its process
    /// to end, or the youngest process below it.
    #[cfg(target_arch = "x86_64")]
    fn waits_for(&self, tid: Pid) -> Option<Pid> {
        let registers = nix::sys::ptrace::getregs(tid).ok()?;
        let threads = self.family.threads();
        let process = threads.iter().find(|(it, _)| *it == tid)?.1;
        match i64::try_from(registers.orig_rax).ok()? {
            // `pthread_join` waits for the thread's id, which the kernel clears, to change.
            libc::SYS_futex => {
                let awaited = Pid::from_raw(i32::try_from(registers.rdx).ok()?);
                threads
                    .iter()
                    .find(|(it, of)| *it == awaited && *of == process && *it != tid)
                    .map(|(it, _)| *it)
            }
            libc::SYS_wait4 | libc::SYS_waitid => threads
                .iter()
                .rev()
                .find(|(it, of)| it == of && ddfuzz_exec::is_child(*it, process))
                .map(|(it, _)| *it),
            _ => None,
        }
    }

    #[cfg(not(target_arch = "x86_64"))]
    fn waits_for(&self, _: Pid) -> Option<Pid> {
        None
    }
}
