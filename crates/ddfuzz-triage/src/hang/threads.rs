//! The threads of a run that is cut off: which of them hangs (the one that uses the processor;
//! where none does, the one that the first thread waits for in the end), how long each has run
//! (wall clocks lie on a busy machine), and how one is stopped while the rest goes on.

use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::sys::ptrace;
use nix::unistd::Pid;

use crate::capture::Tracer;
use ddfuzz_exec::tracing::{poll, resume};

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

/// How long nothing happens before it is looked again whether something has.
const PAUSE: Duration = Duration::from_micros(100);
/// A thread that does not stop by then hangs in the kernel. In wall time: it is only for those.
const PROOF_TIME_FACTOR: Duration = Duration::from_secs(2);
/// One that waits for a processor has so much more time.
const SCHEDULED: Duration = Duration::from_secs(10);

/// A stopped thread.
#[derive(Clone, Copy, Debug)]
pub(super) struct Halted {
    pub tid: Pid,
    /// The signal that it gets when it goes on; 0 for none.
    pub signal: i32,
}

impl Halted {
    /// Lets it go on.
    pub fn resume(self) {
        resume(libc::PTRACE_CONT, self.tid, self.signal);
    }
}

impl Tracer<'_> {
    /// The next event of the run, if there is one within a moment.
    ///
    /// # Errors
    /// `ECHILD` where the run has ended.
    pub(super) fn next_event(&mut self) -> nix::Result<Option<(Pid, i32)>> {
        let event = poll()?;
        if event.is_none() {
            std::thread::sleep(PAUSE);
        }
        Ok(event)
    }

    /// Lets the run go on for some time.
    ///
    /// # Errors
    /// `ECHILD` where it has ended.
    pub(super) fn let_run(&mut self, time: Duration) -> nix::Result<()> {
        let end = Instant::now() + time;
        while Instant::now() < end {
            if let Some((tid, status)) = self.next_event()? {
                self.happened(tid, status);
            }
        }
        Ok(())
    }

    /// Stops one thread.
    ///
    /// # Errors
    /// `ESRCH` where it is gone, `ECHILD` where all are, `ETIMEDOUT` where it does not stop.
    pub(super) fn halt(&mut self, tid: Pid) -> nix::Result<Halted> {
        ptrace::interrupt(tid)?;
        let began = Instant::now();
        loop {
            let elapsed = began.elapsed();
            if elapsed >= SCHEDULED || elapsed >= PROOF_TIME_FACTOR && sleeps(tid) {
                return Err(Errno::ETIMEDOUT);
            }
            let Some((thread, status)) = self.next_event()? else {
                continue;
            };
            if thread == tid && libc::WIFSTOPPED(status) {
                let signal = self.pending(tid, status);
                return Ok(Halted { tid, signal });
            }
            self.happened(thread, status);
            if thread == tid {
                return Err(Errno::ESRCH);
            }
        }
    }

    /// The signal that a stopped thread is about to get, if it is one.
    pub(super) fn pending(&self, tid: Pid, status: i32) -> i32 {
        match status >> 16 {
            0 if !self.is_interrupt(tid, status) => libc::WSTOPSIG(status),
            _ => 0,
        }
    }
}

/// What the scheduler says of a thread.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Scheduled {
    /// CPU time that it has used.
    pub cpu: Duration,
    /// Time that it has waited for a processor.
    waited: Duration,
}

impl Scheduled {
    /// Looks; zeros of a thread that is gone.
    pub fn of(tid: Pid) -> Scheduled {
        match std::fs::read_to_string(format!("/proc/{tid}/schedstat")) {
            Ok(line) => Scheduled::parse(&line).unwrap_or_default(),
            // Kernels may be built without it.
            Err(_) => Scheduled {
                cpu: ticks(tid).unwrap_or_default(),
                waited: Duration::ZERO,
            },
        }
    }

    fn parse(line: &str) -> Option<Scheduled> {
        let mut fields = line.split_whitespace().map(str::parse);
        let mut next = || fields.next()?.ok().map(Duration::from_nanos);
        Some(Scheduled {
            cpu: next()?,
            waited: next()?,
        })
    }
}

/// What the kernel counts in coarse steps.
fn ticks(tid: Pid) -> Option<Duration> {
    let stat = std::fs::read_to_string(format!("/proc/{tid}/stat")).ok()?;
    let rest = stat.get(stat.rfind(')')? + 2..)?;
    let mut fields = rest.split_whitespace().skip(11).map(str::parse::<u64>);
    let count = fields.next()?.ok()? + fields.next()?.ok()?;
    Some(Duration::from_millis(count * 10))
}

/// Whether it waits for something else than a processor.
pub(crate) fn sleeps(tid: Pid) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{tid}/stat")).unwrap_or_default();
    let state = stat.rfind(')').and_then(|end| stat.get(end + 2..));
    state.is_some_and(|state| state.starts_with(['S', 'D']))
}

/// The time that a thread was running, or asleep by its own will: that in which a busy machine
/// kept it from running does not count.
#[derive(Debug)]
pub(super) struct ActiveTime {
    tid: Pid,
    before: Scheduled,
    looked: Instant,
    active: Duration,
}

impl ActiveTime {
    /// Begins to count.
    pub fn of(tid: Pid) -> ActiveTime {
        ActiveTime {
            tid,
            before: Scheduled::of(tid),
            looked: Instant::now(),
            active: Duration::ZERO,
        }
    }

    /// Looks, and says how much it is so far.
    pub fn look(&mut self) -> Duration {
        let (now, at) = (Scheduled::of(self.tid), Instant::now());
        let cpu = now.cpu.saturating_sub(self.before.cpu);
        let waited = now.waited.saturating_sub(self.before.waited);
        self.active += cpu;
        if sleeps(self.tid) {
            self.active += (at - self.looked).saturating_sub(cpu + waited);
        }
        (self.before, self.looked) = (now, at);
        self.active
    }

    /// Goes on counting from here: the thread was stopped by us.
    pub fn go_on(&mut self) {
        (self.before, self.looked) = (Scheduled::of(self.tid), Instant::now());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_scheduler_says_is_read() {
        let said = Scheduled::parse("1000 20 3\n").unwrap();
        assert_eq!(said.cpu, Duration::from_micros(1));
        assert_eq!(said.waited, Duration::from_nanos(20));
        assert_eq!(Scheduled::parse("nonsense"), None);
    }

    #[test]
    fn our_own_thread_does_not_sleep_and_has_run() {
        let us = nix::unistd::gettid();
        assert!(!sleeps(us));
        assert!(ticks(us).is_some());
    }
}
