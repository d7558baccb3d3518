//! Traces a process and all its descendants with ptrace, from `execve` until all have ended.
//!
//! The tracing thread has no children of its own, so `waitpid` for any child of this thread
//! (`__WNOTHREAD`) returns exactly the traced threads, without polling.

use std::collections::HashMap;

use nix::errno::Errno;
use nix::sys::ptrace;
use nix::sys::ptrace::Options;
use nix::unistd::Pid;

use crate::hang::{COOKIE, CutOffRequest};
use crate::modules::ModuleCache;
use crate::overwritten_return::ReturnSlotWatch;
use crate::registers::Registers;
use crate::snapshot::{Event, Snapshot};
use crate::snapshot_reader::{Cause, has_address, is_aftermath, read, read_at};
use crate::wrapper::{Executed, Wrapper};
use ddfuzz_exec::tracing::{process_of, resume, wait};
use ddfuzz_exec::{Ended, proc_text, tree_cpu};

/// The result of tracing a process and its descendants by ptrace to their end.
#[derive(Debug)]
pub(crate) struct Trace {
    /// How the traced run ended: by the crash of a process of the run, if any crashed (the first
    /// one counts); otherwise as the first process itself ended.
    pub ended: Ended,
    /// State of the process that crashed or, if none did, of the first process of the run. It was
    /// read at the last crash signal (even if the process survived it), at an exit with the status
    /// that counts as a crash, or when the run exceeded a limit; `None` if nothing of this
    /// happened.
    pub snapshot: Option<Box<Snapshot>>,
    /// The target's program as a wrapper, which has executed another program in its place in the
    /// first process of the run; `None` if the process executed no other program, or if its end was
    /// not seen.
    pub wrapper: Option<Wrapper>,
}

/// Number of crash signals per run at which a snapshot of the process is always taken; at later
/// ones, only if the target has no handler for the signal.
const FREE_SNAPSHOTS: u32 = 16;

/// Maximum number of crash signals per thread that are remembered (cause and registers) because no
/// snapshot was taken at them; when there are more, the oldest ones are dropped.
const NOTED: usize = 8;

/// A crash signal at which no snapshot was taken, because the target handles it.
struct HandledSignal {
    cause: Cause,
    registers: Registers,
}

/// The ptrace tracer of one run: the first process with its descendants, and the snapshots taken of
/// them so far.
pub(crate) struct Tracer<'a> {
    pub(super) pid: Pid,
    crash_exit: Option<i32>,
    pub(super) cache: &'a mut ModuleCache,
    taken: u32,
    /// Whether the first process of the run executes the target's program already; false until its
    /// `execve`.
    executed: bool,
    /// Command line and environment with which the first process of the run has executed the
    /// target's program, in its first `execve`. `None` before this `execve`, or if the process was
    /// forked from the running target.
    first: Option<Executed>,
    /// The target's program as a wrapper; `None` as long as the first process of the run has
    /// executed no other program in its place.
    wrapper: Option<Wrapper>,
    options: Options,
    pub(super) threads: TracedThreads,
    /// The watchdog's request to interrupt a run that exceeds its limits.
    pub(super) request: &'a CutOffRequest,
    /// How the first process of the run ended; `None` while it runs.
    pub(super) main: Option<Ended>,
    /// Snapshot of that process of the run which was the first to stop itself (`SIGSTOP`), used if
    /// the process is never continued and has to be killed; `None` if no process stopped itself.
    pub(super) stopped: Option<Snapshot>,
    /// Result of the trace if the run was interrupted because it exceeded a limit, else `None`.
    pub(super) interrupted: Option<Trace>,
    /// The last snapshot of each process of the run, by process id, together with the id of the
    /// thread whose state the snapshot has.
    last: HashMap<Pid, (Pid, Snapshot)>,
    /// For each thread, the last crash signals at which no snapshot was taken of it, oldest first.
    handled: HashMap<Pid, Vec<HandledSignal>>,
    /// Stack pointer of the first process when its first `execve` has started the target's program.
    /// 0 before that, or if the process was forked from the running target, where stack slots have
    /// the same absolute addresses in each run.
    entry_sp: u64,
    /// The watch over the stack slot in which a return address is overwritten; `None` if this run
    /// watches no slot.
    watch: Option<ReturnSlotWatch>,
    /// The process of the run that was the first to die of a crash signal, and the number of that
    /// signal; `None` if no process has died of a crash signal.
    crash: Option<(Pid, i32)>,
}

impl<'a> Tracer<'a> {
    /// Attaches by ptrace to the process `pid`, which waits to be traced, and returns its tracer.
    /// If `executes` is true, the process waits before its `execve` of the target's program;
    /// otherwise it was forked from the running target. `crash_exit` is the exit status that counts
    /// as a crash. `request` is the watchdog's request to interrupt the run. `slot` is the stack
    /// slot in which a return address is overwritten, as an address minus the stack pointer at the
    /// program's entry ([`Snapshot::wrong_returns`]): the run watches it for writes; `None` watches
    /// none.
    ///
    /// # Errors
    /// `EPERM` where tracing is refused, `ESRCH` where the process is gone.
    pub(crate) fn seize(
        pid: Pid,
        executes: bool,
        crash_exit: Option<i32>,
        cache: &'a mut ModuleCache,
        request: &'a CutOffRequest,
        slot: Option<u64>,
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
            if slot.is_some() {
                // It stops before it is released: the watchpoint is set there.
                ptrace::interrupt(pid)?;
            }
        }
        Ok(Tracer {
            pid,
            crash_exit,
            cache,
            taken: 0,
            executed: !executes,
            first: None,
            wrapper: None,
            options,
            threads: TracedThreads::of(pid),
            request,
            main: None,
            stopped: None,
            interrupted: None,
            last: HashMap::new(),
            handled: HashMap::new(),
            entry_sp: 0,
            watch: slot.map(ReturnSlotWatch::new),
            crash: None,
        })
    }

    /// Lets the process and its descendants run, with all signals delivered, until all have ended;
    /// returns how the run ended and the snapshot of its crash.
    ///
    /// # Errors
    /// When `waitpid` fails.
    pub(crate) fn follow(mut self) -> nix::Result<Trace> {
        loop {
            match (wait(), self.main) {
                (Ok((tid, status)), _) => self.handle_event(tid, status),
                (Err(Errno::ECHILD), Some(ended)) => return Ok(self.into_trace(ended)),
                (Err(error), _) => return Err(error),
            }
        }
    }

    /// Handles one wait status of the traced thread `tid`: notes its end, or takes a snapshot if
    /// the thread is about to receive a crash signal or to exit with the status that counts as a
    /// crash, and resumes it. A thread that the target itself stopped stays stopped; once the run
    /// was interrupted for exceeding a limit, the process is killed.
    pub(super) fn handle_event(&mut self, tid: Pid, status: i32) {
        if libc::WIFSTOPPED(status) {
            return self.handle_stop(tid, status);
        }
        let ended = Ended::from_wait_status(status);
        self.forget_thread(tid, ended);
        if tid == self.pid {
            self.main = Some(ended);
        }
    }

    fn forget_thread(&mut self, tid: Pid, ended: Ended) {
        self.handled.remove(&tid);
        // A thread that dies before its first event has been killed with its whole process, whose
        // other threads tell more.
        let Some(process) = self.threads.forget_thread(tid) else {
            return;
        };
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
        if let Some(interrupted) = self.interrupted {
            return interrupted;
        }
        let main_crashed = ended.is_crash(self.crash_exit);
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
            return Trace {
                ended,
                snapshot,
                wrapper: None,
            };
        }
        let of_descendant = process != self.pid && !main_crashed;
        let snapshot = last.map(|(_, snapshot)| {
            Box::new(Snapshot {
                of_descendant,
                ..snapshot
            })
        });
        Trace {
            ended,
            snapshot,
            wrapper: self.wrapper.filter(|it| it.total >= it.spent),
        }
    }

    fn handle_stop(&mut self, tid: Pid, status: i32) {
        let signal = libc::WSTOPSIG(status);
        let process = self.threads.process(tid);
        if self.interrupted.is_some() {
            self.kill(process);
            // It may be stopped on its way out.
            return resume(libc::PTRACE_CONT, tid, 0);
        }
        self.begin_watch(tid);
        match status >> 16 {
            0 if signal == libc::SIGTRAP && self.is_watched_write(tid) => {
                resume(libc::PTRACE_CONT, tid, 0);
            }
            0 if self.is_interrupt(tid, status) => match self.request.take() {
                Some(reason) => self.cut_off(reason, tid),
                None => resume(libc::PTRACE_CONT, tid, 0),
            },
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
                self.begin_watch(tid);
                resume(libc::PTRACE_CONT, tid, 0);
            }
            libc::PTRACE_EVENT_EXIT => {
                // Only the first process of the run can crash by its exit status: the user has
                // declared that status for its program.
                if process == self.pid {
                    self.about_to_exit(tid);
                }
                resume(libc::PTRACE_CONT, tid, 0);
            }
            _ => resume(libc::PTRACE_CONT, tid, 0),
        }
    }

    /// Begins the watch over the stack slot, if this run has one and the thread `tid` is the first
    /// thread of the run and executes the target's program; does nothing if the watch has begun
    /// before.
    fn begin_watch(&mut self, tid: Pid) {
        let is_ready = self.executed && tid == self.pid;
        if let Some(watch) = self.watch.as_mut().filter(|it| is_ready && !it.is_begun) {
            watch.begin(tid, self.entry_sp);
        }
    }

    fn is_watched_write(&mut self, tid: Pid) -> bool {
        let watch = self.watch.as_mut().filter(|_| tid == self.pid);
        watch.is_some_and(|watch| watch.was_written(tid))
    }

    /// Checks whether the stop of the thread `tid` (with the wait status `status`) comes from the
    /// `SIGSTOP` of the watchdog, which interrupts runs, and not from a signal of the target.
    pub(super) fn is_interrupt(&self, tid: Pid, status: i32) -> bool {
        libc::WSTOPSIG(status) == libc::SIGSTOP
            && ptrace::getsiginfo(tid).is_ok_and(|info| {
                // SAFETY: a signal that was queued carries a value.
                info.si_code == libc::SI_QUEUE
                    && unsafe { info.si_value() }.sival_ptr as usize == COOKIE
            })
    }

    /// Handles the `execve` of a process of the run: discards the snapshot taken of the process,
    /// because the state of the old program does not explain how the new one ends.
    fn executed(&mut self, process: Pid) {
        self.last.remove(&process);
        self.handled.remove(&process);
        if process != self.pid {
            return;
        }
        if !self.executed {
            self.executed = true;
            self.entry_sp = Registers::of(process).map_or(0, |registers| registers.sp);
            self.cache.know_target(process);
            self.first = Executed::by(process);
            return;
        }
        let first = self.first.as_ref();
        self.wrapper = first.and_then(|first| Wrapper::by(process, first));
        // Its end shows the CPU time of the whole run; without that, nothing is said.
        let _ = ptrace::setoptions(process, self.options | Options::PTRACE_O_TRACEEXIT);
    }

    fn about_to_deliver(&mut self, process: Pid, tid: Pid, number: i32) {
        let (code, address) = describe(tid);
        let cause = Cause {
            event: Event::Signal { number, code },
            address,
        };
        if self.taken >= FREE_SNAPSHOTS && handles(tid, number) {
            return self.note_handled(tid, cause);
        }
        self.taken += 1;
        let mut snapshot = self.read(tid, cause);
        if let Some(watch) = self.watch.as_ref().filter(|_| tid == self.pid) {
            snapshot = watch.corrected(tid, snapshot, self.cache);
        }
        for slot in &mut snapshot.wrong_returns {
            *slot = slot.wrapping_sub(self.entry_sp);
        }
        if !self.is_aftermath(process, tid, &snapshot) {
            self.blame_memory(process, &mut snapshot);
            self.last.insert(process, (tid, snapshot));
        }
    }

    /// Keeps cause and registers of a crash signal of the thread `tid` at which no snapshot is
    /// taken, because the target handles the signal. They describe the crash if the handler then
    /// ends the process.
    fn note_handled(&mut self, tid: Pid, cause: Cause) {
        let Ok(registers) = Registers::of(tid) else {
            return;
        };
        let noted = self.handled.entry(tid).or_default();
        // An earlier signal at the same instruction is over: its handler has jumped away
        // (`longjmp`).
        noted.retain(|earlier| earlier.registers.pc != registers.pc);
        if noted.len() == NOTED {
            noted.remove(0);
        }
        noted.push(HandledSignal { cause, registers });
    }

    /// Reads a snapshot of the stopped thread `tid`. If the thread is in the handler of a crash
    /// signal at which no snapshot was taken, the snapshot is that of the code that the signal
    /// interrupted.
    fn read(&mut self, tid: Pid, cause: Cause) -> Snapshot {
        let snapshot = read(tid, cause, self.cache);
        let Some(noted) = self.handled.get(&tid) else {
            return snapshot;
        };
        let outermost = snapshot.interrupted.iter().rev().find_map(|pc| {
            let mut noted = noted.iter();
            noted.find(|signal| signal.registers.pc == *pc)
        });
        match outermost {
            Some(signal) => read_at(tid, &signal.registers, signal.cause, self.cache),
            None => snapshot,
        }
    }

    /// Returns true if `later`, a new snapshot of the thread `tid` of the process `process`, shows
    /// only a consequence of the event in this process's last snapshot, such as an abort in the
    /// target's signal handler. Returns false if the last snapshot is of another thread, or if
    /// there is none.
    fn is_aftermath(&self, process: Pid, tid: Pid, later: &Snapshot) -> bool {
        let Some((thread, earlier)) = self.last.get(&process) else {
            return false;
        };
        *thread == tid && is_aftermath(earlier, later)
    }

    fn about_to_exit(&mut self, tid: Pid) {
        if let Some(wrapper) = &mut self.wrapper {
            wrapper.total = tree_cpu(self.pid);
        }
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
        let last = self.last.get(&self.pid);
        if last.is_some_and(|(_, last)| matches!(last.event, Event::Exit(_))) {
            return;
        }
        let mut snapshot = Snapshot {
            event: cause.event,
            ..self.read(tid, cause)
        };
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

/// Returns the signal code (`si_code`; 0 if it cannot be read) and the fault address of the signal
/// that a stopped thread is about to receive. The address is `None` where the kernel reports none:
/// for a signal that was sent, and for an access to a non-canonical address.
pub(crate) fn describe(tid: Pid) -> (i32, Option<u64>) {
    let Ok(info) = ptrace::getsiginfo(tid) else {
        return (0, None);
    };
    let known = has_address(info.si_signo, info.si_code);
    // SAFETY: for these signals, raised by the processor, the union holds the fault address.
    let address = known.then(|| unsafe { info.si_addr() } as u64);
    (info.si_code, address)
}

/// Checks whether the process of thread `tid` has installed a handler for `signal`, from
/// `/proc/TID/status`.
pub(crate) fn handles(tid: Pid, signal: i32) -> bool {
    let status = proc_text(format!("/proc/{tid}/status").as_ref()).unwrap_or_default();
    status
        .lines()
        .find_map(|line| line.strip_prefix("SigCgt:"))
        .and_then(|digits| u64::from_str_radix(digits.trim(), 16).ok())
        .is_some_and(|caught| caught & 1 << (signal - 1) != 0)
}

/// The threads of a traced run, and the process that each belongs to.
#[derive(Debug, Default)]
pub(crate) struct TracedThreads {
    /// The run's first process, whose first thread has the same id; `None` where it is not known.
    first: Option<Pid>,
    process_of: HashMap<Pid, Pid>,
    /// The ids of the run's live threads, in the order in which the tracer met them first.
    threads: Vec<Pid>,
}

impl TracedThreads {
    /// Creates an empty list of threads for a run whose first process has the id `first`.
    fn of(first: Pid) -> TracedThreads {
        TracedThreads {
            first: Some(first),
            ..TracedThreads::default()
        }
    }

    /// Returns the id of the process to which the thread `tid` belongs, and adds the thread to the
    /// live ones at its first event. For a thread that is gone, returns the process id that an
    /// earlier event told, else the thread's own id.
    pub(crate) fn process(&mut self, tid: Pid) -> Pid {
        let (threads, is_first) = (&mut self.threads, self.first == Some(tid));
        *self.process_of.entry(tid).or_insert_with(|| {
            threads.push(tid);
            match is_first {
                true => tid,
                false => process_of(tid).unwrap_or(tid),
            }
        })
    }

    /// Returns the ids of all live threads of the run, each as (thread id, process id), in the
    /// order in which the tracer met them first.
    pub(crate) fn threads(&self) -> Vec<(Pid, Pid)> {
        let process = |tid: &Pid| self.process_of.get(tid).copied().unwrap_or(*tid);
        let threads = self.threads.iter();
        threads.map(|tid| (*tid, process(tid))).collect()
    }

    /// Removes a thread that has ended from the live threads, since its id may be reused, and
    /// returns the id of its process; `None` for a thread that the tracer has never met.
    pub(crate) fn forget_thread(&mut self, tid: Pid) -> Option<Pid> {
        self.threads.retain(|it| *it != tid);
        self.process_of.remove(&tid)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_belongs_to_its_process_also_when_it_is_gone() {
        let (sender, met) = std::sync::mpsc::channel();
        let mut threads = TracedThreads::default();
        std::thread::scope(|scope| {
            let (go, wait) = std::sync::mpsc::channel::<()>();
            scope.spawn(move || {
                sender.send(nix::unistd::gettid()).unwrap();
                wait.recv().unwrap_err();
            });
            let tid = met.recv().unwrap();
            assert_ne!(tid, Pid::this());
            assert_eq!(threads.process(tid), Pid::this());
            drop(go);
            assert_eq!(threads.forget_thread(tid), Some(Pid::this()));
            assert_eq!(threads.forget_thread(tid), None);
        });
    }
}
