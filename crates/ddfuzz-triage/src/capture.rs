//! Follows one process, and all that descends from it, under ptrace from its `execve` to the end of
//! all of them.
//!
//! The thread that traces has no children of its own, so that a wait for "any child of this
//! thread" (`__WNOTHREAD`) gives exactly what it traces: the processes and their threads, without
//! polling and without what other tracers in this program wait for.

use std::collections::HashMap;

use nix::errno::Errno;
use nix::sys::ptrace;
use nix::sys::ptrace::Options;
use nix::unistd::Pid;

use crate::hang::{COOKIE, Order};
use crate::modules::ModuleCache;
use crate::reading::{Cause, has_address, is_aftermath, read};
use crate::snapshot::{Event, Snapshot};
use ddfuzz_exec::Ended;
use ddfuzz_exec::tracing::{process_of, resume, wait};

/// A process that was followed to its end.
#[derive(Debug)]
pub(crate) struct Trace {
    /// How it ended; by the first crash, where it or a descendant crashed.
    pub ended: Ended,
    /// What was read off the process that ended so when the cause of its death stopped it.
    pub snapshot: Option<Box<Snapshot>>,
}

/// Snapshots taken of one run without asking whether the target handles the signal.
const FREE_SNAPSHOTS: u32 = 16;

/// A traced process and what was read off it so far.
pub(crate) struct Tracer<'a> {
    pub(super) pid: Pid,
    crash_exit: Option<i32>,
    pub(super) cache: &'a mut ModuleCache,
    taken: u32,
    /// Whether the process has come to its own program.
    executed: bool,
    pub(super) family: Family,
    /// What is to be done when the run is over its limits.
    pub(super) order: &'a Order,
    /// How the process itself has ended.
    pub(super) main: Option<Ended>,
    /// What was read off the first process that stopped itself.
    pub(super) stopped: Option<Snapshot>,
    /// Where the run was when it was cut off.
    pub(super) cut: Option<Trace>,
    /// By process: the thread that was read last, and what was read.
    last: HashMap<Pid, (Pid, Snapshot)>,
    /// The first process to die of a crash, and its signal.
    crash: Option<(Pid, i32)>,
}

impl<'a> Tracer<'a> {
    /// Seizes a process that waits before its `execve`, if it `executes`; else it is the target.
    ///
    /// # Errors
    /// The system's answer: `EPERM` where tracing is refused, `ESRCH` where the process is gone.
    pub(crate) fn seize(
        pid: Pid,
        executes: bool,
        crash_exit: Option<i32>,
        cache: &'a mut ModuleCache,
        order: &'a Order,
    ) -> nix::Result<Tracer<'a>> {
        let mut options = Options::PTRACE_O_EXITKILL
            | Options::PTRACE_O_TRACEFORK
            | Options::PTRACE_O_TRACEVFORK
            | Options::PTRACE_O_TRACECLONE
            | Options::PTRACE_O_TRACEEXEC;
        if crash_exit.is_some() {
            options |= Options::PTRACE_O_TRACEEXIT;
        }
        ptrace::seize(pid, options)?;
        if !executes {
            cache.know_target(pid);
        }
        Ok(Tracer {
            pid,
            crash_exit,
            cache,
            taken: 0,
            executed: !executes,
            family: Family::default(),
            order,
            main: None,
            stopped: None,
            cut: None,
            last: HashMap::new(),
            crash: None,
        })
    }

    /// Lets the process and its descendants run, with every signal delivered, until none of them
    /// is left. What the process leaves behind, its server kills.
    ///
    /// # Errors
    /// When the process cannot be waited for.
    pub(crate) fn follow(mut self) -> nix::Result<Trace> {
        loop {
            match (wait(), self.main) {
                (Ok((tid, status)), _) => self.happened(tid, status),
                (Err(Errno::ECHILD), Some(ended)) => return Ok(self.into_trace(ended)),
                (Err(error), _) => return Err(error),
            }
        }
    }

    /// Takes what a wait has told; a thread that is stopped goes on.
    pub(super) fn happened(&mut self, tid: Pid, status: i32) {
        if libc::WIFSTOPPED(status) {
            return self.stopped(tid, status);
        }
        let ended = Ended::from_wait_status(status);
        self.bury(tid, ended);
        if tid == self.pid {
            self.main = Some(ended);
        }
    }

    fn bury(&mut self, tid: Pid, ended: Ended) {
        let process = self.family.bury(tid);
        match ended {
            // All threads of a process die of the signal of one.
            Ended::Signal(signal) if ended.is_crash(None) => {
                self.crash.get_or_insert((process, signal));
            }
            _ if tid == process && tid != self.pid => drop(self.last.remove(&tid)),
            _ => {}
        }
    }

    fn into_trace(mut self, ended: Ended) -> Trace {
        if let Some(cut) = self.cut {
            return cut;
        }
        let (process, ended) = match self.crash {
            Some((process, signal)) => (process, Ended::Signal(signal)),
            None => (self.pid, ended),
        };
        let last = self.last.remove(&process);
        let ended = match (&last, ended) {
            (Some((_, last)), Ended::Signal(_)) if last.event == Event::OutOfMemory => {
                Ended::OutOfMemory
            }
            _ => ended,
        };
        if ended == Ended::Signal(libc::SIGKILL)
            && let Some(stopped) = self.stopped
        {
            let snapshot = Some(Box::new(stopped));
            return Trace { ended, snapshot };
        }
        Trace {
            ended,
            snapshot: last.map(|(_, snapshot)| Box::new(snapshot)),
        }
    }

    fn stopped(&mut self, tid: Pid, status: i32) {
        let signal = libc::WSTOPSIG(status);
        let process = self.family.process(tid);
        if self.cut.is_some() {
            self.kill(process);
            // It may be stopped on its way out.
            return resume(libc::PTRACE_CONT, tid, 0);
        }
        match status >> 16 {
            0 if self.is_interrupt(tid, status) => {
                resume(libc::PTRACE_CONT, tid, 0);
                if let Some(cut) = self.order.take() {
                    self.cut_off(cut);
                }
            }
            0 => {
                if Ended::Signal(signal).is_crash(None) {
                    self.about_to_deliver(process, tid, signal);
                }
                resume(libc::PTRACE_CONT, tid, signal);
            }
            libc::PTRACE_EVENT_STOP if signal != libc::SIGTRAP => {
                // The target stopped itself: it stays so until it is continued or killed.
                self.note_stopped(tid);
                resume(libc::PTRACE_LISTEN, tid, 0);
            }
            libc::PTRACE_EVENT_EXEC => {
                self.executed(process);
                resume(libc::PTRACE_CONT, tid, 0);
            }
            libc::PTRACE_EVENT_EXIT => {
                // What is a crash by its status is one of the program that was asked for.
                if process == self.pid {
                    self.about_to_exit(tid);
                }
                resume(libc::PTRACE_CONT, tid, 0);
            }
            _ => resume(libc::PTRACE_CONT, tid, 0),
        }
    }

    /// Whether a thread is stopped by the signal by which the watchdog interrupts a run.
    pub(super) fn is_interrupt(&self, tid: Pid, status: i32) -> bool {
        libc::WSTOPSIG(status) == libc::SIGSTOP
            && ptrace::getsiginfo(tid).is_ok_and(|info| {
                // SAFETY: a signal that was queued carries a value.
                info.si_code == libc::SI_QUEUE
                    && unsafe { info.si_value() }.sival_ptr as usize == COOKIE
            })
    }

    /// What was read of the program before does not explain an end of this one.
    fn executed(&mut self, process: Pid) {
        self.last.remove(&process);
        if process == self.pid && !self.executed {
            self.executed = true;
            self.cache.know_target(process);
        }
    }

    fn about_to_deliver(&mut self, process: Pid, tid: Pid, number: i32) {
        if self.taken >= FREE_SNAPSHOTS && handles(tid, number) {
            return;
        }
        self.taken += 1;
        let (code, address) = describe(tid);
        let cause = Cause {
            event: Event::Signal { number, code },
            address,
        };
        let mut snapshot = read(tid, cause, self.cache);
        if !self.is_aftermath(process, tid, &snapshot) {
            self.blame_memory(process, &mut snapshot);
            self.last.insert(process, (tid, snapshot));
        }
    }

    /// Whether a stop only follows from the one before.
    fn is_aftermath(&self, process: Pid, tid: Pid, later: &Snapshot) -> bool {
        let Some((thread, earlier)) = self.last.get(&process) else {
            return false;
        };
        *thread == tid && is_aftermath(earlier, later)
    }

    fn about_to_exit(&mut self, tid: Pid) {
        let Ok(status) = ptrace::getevent(tid) else {
            return;
        };
        let status = status as i32;
        if !libc::WIFEXITED(status) || self.crash_exit != Some(libc::WEXITSTATUS(status)) {
            return;
        }
        let cause = Cause {
            event: Event::Exit(libc::WEXITSTATUS(status)),
            address: None,
        };
        // Of several threads the one that called exit is the first to come here.
        if matches!(
            self.last.get(&self.pid),
            Some((
                _,
                Snapshot {
                    event: Event::Exit(_),
                    ..
                }
            ))
        ) {
            return;
        }
        let mut snapshot = read(tid, cause, self.cache);
        if let Some((thread, earlier)) = self.last.remove(&self.pid)
            && thread == tid
            && snapshot.interrupted.contains(&earlier.registers.pc)
        {
            // A handler of the target exits: what it handles is the place that matters.
            snapshot = Snapshot {
                event: cause.event,
                ..earlier
            };
        }
        self.last.insert(self.pid, (tid, snapshot));
    }
}

/// `si_code` and, where the processor raised the signal, the fault address.
fn describe(tid: Pid) -> (i32, Option<u64>) {
    let Ok(info) = ptrace::getsiginfo(tid) else {
        return (0, None);
    };
    let known = has_address(info.si_signo, info.si_code);
    // SAFETY: for these signals, raised by the processor, the union holds the fault address.
    (
        info.si_code,
        known.then(|| unsafe { info.si_addr() } as u64),
    )
}

/// Whether the target has a handler for `signal`.
fn handles(tid: Pid, signal: i32) -> bool {
    let status = std::fs::read_to_string(format!("/proc/{tid}/status")).unwrap_or_default();
    status
        .lines()
        .find_map(|line| line.strip_prefix("SigCgt:"))
        .and_then(|digits| u64::from_str_radix(digits.trim(), 16).ok())
        .is_some_and(|caught| caught & 1 << (signal - 1) != 0)
}

/// The threads that were met, and their processes.
#[derive(Debug, Default)]
pub(crate) struct Family {
    process_of: HashMap<Pid, Pid>,
    /// The threads that live, in the order in which they were met.
    threads: Vec<Pid>,
}

impl Family {
    /// The process of a thread that is stopped. Of one that is gone, what was learned before;
    /// else it counts as a process of its own.
    pub(crate) fn process(&mut self, tid: Pid) -> Pid {
        let threads = &mut self.threads;
        *self.process_of.entry(tid).or_insert_with(|| {
            threads.push(tid);
            process_of(tid).unwrap_or(tid)
        })
    }

    /// The threads that live, in the order in which they were met, each with its process.
    pub(crate) fn threads(&self) -> Vec<(Pid, Pid)> {
        let process = |tid: &Pid| self.process_of.get(tid).copied().unwrap_or(*tid);
        self.threads
            .iter()
            .map(|tid| (*tid, process(tid)))
            .collect()
    }

    /// Forgets a thread that has ended: its id may come again. Gives its process.
    pub(crate) fn bury(&mut self, tid: Pid) -> Pid {
        self.threads.retain(|it| *it != tid);
        self.process_of.remove(&tid).unwrap_or(tid)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_belongs_to_its_process_also_when_it_is_gone() {
        let (sender, met) = std::sync::mpsc::channel();
        let mut family = Family::default();
        std::thread::scope(|scope| {
            let (go, wait) = std::sync::mpsc::channel::<()>();
            scope.spawn(move || {
                sender.send(nix::unistd::gettid()).unwrap();
                wait.recv().unwrap_err();
            });
            let tid = met.recv().unwrap();
            assert_ne!(tid, Pid::this());
            assert_eq!(family.process(tid), Pid::this());
            drop(go);
            assert_eq!(family.bury(tid), Pid::this());
            assert_eq!(family.bury(Pid::from_raw(i32::MAX)).as_raw(), i32::MAX);
        });
    }
}
