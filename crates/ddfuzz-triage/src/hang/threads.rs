//! The threads of an interrupted run: which thread hangs (the one that uses the processor; if none
//! does, the one that the first thread waits for), how long each has been active, and how a single
//! thread is stopped.

use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::sys::ptrace;
use nix::unistd::Pid;

use crate::capture::Tracer;
use ddfuzz_exec::proc_text;
use ddfuzz_exec::tracing::{poll, resume};

/// Minimum CPU time with which a thread counts as running, when all threads of a run are observed
/// for a while to find the one that hangs.
const RUNNING_CPU: Duration = Duration::from_millis(20);
/// CPU time below which a thread counts as idle, when all threads of a run are observed for a while
/// to find the one that hangs.
const IDLE_CPU: Duration = Duration::from_millis(2);
/// Maximum wall time for which the CPU time of a run's threads is observed to find the one that
/// hangs.
const LONGEST: Duration = Duration::from_millis(300);
/// Wall time after which the search for a running thread ends if no thread has used CPU time.
const QUIET: Duration = Duration::from_millis(40);
/// Divisor of the CPU time of the busiest thread: a thread that has used at least the quotient
/// counts as running.
const RUNNING_DIVISOR: u32 = 4;
/// Maximum length of a chain of threads, each of which waits for the next, that is followed to find
/// the hanging thread.
const MOST: usize = 64;

impl Tracer<'_> {
    /// Returns the thread of the run that hangs: one that uses the processor, else the one for
    /// which the first thread waits, directly or through others. `None` if all threads have ended.
    /// `asleep` says that no thread uses the processor.
    pub(super) fn hanging_thread(&mut self, asleep: bool) -> nix::Result<Option<Pid>> {
        let threads = self.threads.threads();
        if threads.len() <= 1 {
            return Ok(threads.first().map(|(tid, _)| *tid));
        }
        let busiest = if asleep { None } else { self.busiest()? };
        match busiest {
            Some(tid) => Ok(Some(tid)),
            None => self.last_waited_for().map(Some),
        }
    }

    /// Returns the thread of the run that uses the processor. Of several, it is the one that was
    /// started last, because a thread that waits actively (spins) is usually older than the one it
    /// waits for. `None` if all are idle.
    fn busiest(&mut self) -> nix::Result<Option<Pid>> {
        let began = Instant::now();
        let threads = self.threads.threads().into_iter();
        let before: Vec<(Pid, Duration)> = threads
            .map(|(tid, _)| (tid, Scheduled::of(tid).cpu))
            .collect();
        loop {
            self.let_run(Duration::from_millis(2))?;
            let used =
                |(tid, cpu): &(Pid, Duration)| (*tid, Scheduled::of(*tid).cpu.saturating_sub(*cpu));
            let used: Vec<(Pid, Duration)> = before.iter().map(used).collect();
            let most = used.iter().map(|(_, cpu)| *cpu).max().unwrap_or_default();
            let elapsed = began.elapsed();
            let clear = most >= RUNNING_CPU || most < IDLE_CPU && elapsed >= QUIET;
            if clear || elapsed >= LONGEST {
                let mut running = used
                    .iter()
                    .filter(|(_, cpu)| *cpu * RUNNING_DIVISOR >= most);
                let last = running.next_back().map(|(tid, _)| *tid);
                return Ok(last.filter(|_| most >= IDLE_CPU));
            }
        }
    }

    /// Follows the chain of threads, each of which waits for another thread or a child process,
    /// from the first thread of the run on, and returns the last thread in the chain.
    fn last_waited_for(&mut self) -> nix::Result<Pid> {
        let threads = self.threads.threads();
        let mut at = threads.first().map_or(self.pid, |(tid, _)| *tid);
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

    /// Returns the thread for which the stopped thread `tid` waits, judging by its system call:
    /// another thread of its process (`pthread_join`), or the first thread of its youngest child
    /// process; `None` if neither.
    #[cfg(target_arch = "x86_64")]
    fn waits_for(&self, tid: Pid) -> Option<Pid> {
        let registers = nix::sys::ptrace::getregs(tid).ok()?;
        let threads = self.threads.threads();
        let process = threads.iter().find(|(it, _)| *it == tid)?.1;
        match i64::try_from(registers.orig_rax).ok()? {
            // `pthread_join` waits for the thread's id, which the kernel clears, to change.
            libc::SYS_futex => {
                let awaited = Pid::from_raw(i32::try_from(registers.rdx).ok()?);
                let known = threads.contains(&(awaited, process)) && awaited != tid;
                known.then_some(awaited)
            }
            libc::SYS_wait4 | libc::SYS_waitid => {
                let mut processes = threads.iter().rev().filter(|(it, of)| it == of);
                let child = processes.find(|(it, _)| ddfuzz_exec::is_child(*it, process));
                child.map(|(it, _)| *it)
            }
            _ => None,
        }
    }

    #[cfg(not(target_arch = "x86_64"))]
    fn waits_for(&self, _: Pid) -> Option<Pid> {
        None
    }
}

/// Time between two polls for ptrace events of a traced run.
const PAUSE: Duration = Duration::from_micros(100);
/// Wall time that a sleeping thread may take to stop when the tracer interrupts it; after that, it
/// counts as stuck in the kernel.
const STOP_TIME: Duration = Duration::from_secs(2);
/// Longest wall time that the tracer waits until a thread that it interrupts has stopped; a thread
/// that waits for a processor may need long. After that, stopping the thread fails.
const SCHEDULED: Duration = Duration::from_secs(10);

/// A thread stopped by ptrace, with the signal that it receives when it is resumed. It stays
/// stopped until [`resume`](StoppedThread::resume) is called.
#[derive(Clone, Copy, Debug)]
pub(super) struct StoppedThread {
    pub tid: Pid,
    /// Signal that the thread receives when it is resumed; 0 for none.
    pub signal: i32,
}

impl StoppedThread {
    /// Resumes the stopped thread, and delivers the signal at which it was stopped, if there was
    /// one.
    pub fn resume(self) {
        resume(libc::PTRACE_CONT, self.tid, self.signal);
    }
}

impl Tracer<'_> {
    /// Returns the next ptrace event of the run (thread id and wait status), or `None` after a
    /// short pause.
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

    /// Lets the traced processes run for `time`, and handles their ptrace events.
    ///
    /// # Errors
    /// `ECHILD` where the run has ended.
    pub(super) fn let_run(&mut self, time: Duration) -> nix::Result<()> {
        let end = Instant::now() + time;
        while Instant::now() < end {
            if let Some((tid, status)) = self.next_event()? {
                self.handle_event(tid, status);
            }
        }
        Ok(())
    }

    /// Stops the running thread `tid` by ptrace and returns it; handles events of other threads in
    /// the meantime.
    ///
    /// # Errors
    /// `ESRCH` where the thread is gone, `ECHILD` where all threads of the run are gone,
    /// `ETIMEDOUT` where it does not stop.
    pub(super) fn halt(&mut self, tid: Pid) -> nix::Result<StoppedThread> {
        ptrace::interrupt(tid)?;
        let began = Instant::now();
        loop {
            let elapsed = began.elapsed();
            if elapsed >= SCHEDULED || elapsed >= STOP_TIME && sleeps(tid) {
                return Err(Errno::ETIMEDOUT);
            }
            let Some((thread, status)) = self.next_event()? else {
                continue;
            };
            if thread == tid && libc::WIFSTOPPED(status) {
                let signal = self.pending(tid, status);
                return Ok(StoppedThread { tid, signal });
            }
            self.handle_event(thread, status);
            if thread == tid {
                return Err(Errno::ESRCH);
            }
        }
    }

    /// Returns the signal that the thread `tid`, stopped with the wait status `status`, is about to
    /// receive; 0 for none.
    pub(super) fn pending(&self, tid: Pid, status: i32) -> i32 {
        match status >> 16 {
            0 if !self.is_interrupt(tid, status) => libc::WSTOPSIG(status),
            _ => 0,
        }
    }
}

/// CPU time and waiting time of a thread, from the kernel's scheduler statistics.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Scheduled {
    /// CPU time that the thread has used so far.
    pub cpu: Duration,
    /// Time that the thread has spent waiting for a processor so far.
    waited: Duration,
}

impl Scheduled {
    /// Reads the CPU time and waiting time of thread `tid` from the kernel's scheduler statistics;
    /// zero for a thread that has ended.
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

/// Reads from `/proc/TID/stat` the CPU time that a thread has used, which is counted in ticks of 10
/// ms; `None` if the thread is gone.
fn ticks(tid: Pid) -> Option<Duration> {
    let stat = proc_text(format!("/proc/{tid}/stat").as_ref())?;
    let rest = stat.get(stat.rfind(')')? + 2..)?;
    let mut fields = rest.split_whitespace().skip(11).map(str::parse::<u64>);
    let count = fields.next()?.ok()? + fields.next()?.ok()?;
    Some(Duration::from_millis(count * 10))
}

/// Checks whether the thread `tid` sleeps in the kernel, that is, waits for something other than a
/// processor.
pub(crate) fn sleeps(tid: Pid) -> bool {
    let stat = proc_text(format!("/proc/{tid}/stat").as_ref()).unwrap_or_default();
    let state = stat.rfind(')').and_then(|end| stat.get(end + 2..));
    state.is_some_and(|state| state.starts_with(['S', 'D']))
}

/// A stopwatch for the time in which a thread runs or sleeps; time in which it waits for a
/// processor on a busy machine does not count.
#[derive(Debug)]
pub(super) struct ActiveTime {
    tid: Pid,
    before: Scheduled,
    looked: Instant,
    active: Duration,
}

impl ActiveTime {
    /// Starts to measure the time in which thread `tid` runs or sleeps.
    pub fn of(tid: Pid) -> ActiveTime {
        ActiveTime {
            tid,
            before: Scheduled::of(tid),
            looked: Instant::now(),
            active: Duration::ZERO,
        }
    }

    /// Returns how long the thread has run or slept since this measurement began, without the time
    /// in which it waited for a processor or was stopped by the tracer.
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

    /// Continues the measurement after the tracer has stopped the thread; the time since the last
    /// call of `look` does not count.
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
