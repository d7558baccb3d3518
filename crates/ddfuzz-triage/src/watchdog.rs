//! Traces one run to its end, and interrupts it when it exceeds a limit of time or memory.

use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::sync::{Arc, mpsc};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::time::ClockId;
use nix::unistd::Pid;

use crate::capture::{Trace, Tracer};
use crate::hang::{COOKIE, CutOffRequest, InterruptReason, sleeps};
use crate::modules::ModuleCache;
use crate::snapshot::{Event, Snapshot};
use crate::tracee::{Start, Tracee};
use ddfuzz_exec::{
    AbandonWhen, Ended, ExecError, Limits, SchedulingDelay, is_runnable, own_thread_is_runnable,
    switches, tree_cpu, tree_exceeds,
};

/// A run that the tracing thread is to trace: the process that waits to be traced, and what the
/// tracer has to know about the run.
struct Job {
    pid: Pid,
    executes: bool,
    crash_exit: Option<i32>,
    cache: Box<ModuleCache>,
    request: Arc<CutOffRequest>,
    /// Stack slot that is watched for the overwriting of a return address; `None` if no slot is.
    slot: Option<u64>,
}

/// A message from the thread that traces a run to the watchdog: the run is traced now, it cannot be
/// traced, or it has ended.
enum TracingMessage {
    Seized,
    /// The run cannot be traced, for the reason in the error number; its process still waits. Holds
    /// the cache of modules that was lent for the run.
    Refused(Errno, Box<ModuleCache>),
    Ended(nix::Result<Trace>, Box<ModuleCache>),
}

/// The thread that traces the runs of one triager, one after another; `None` until the first run.
/// After an error, the next run gets another thread.
#[derive(Default)]
pub(super) struct TracingThread(Option<RunningThread>);

/// A running thread that traces runs. Tracing needs a separate thread, because the thread waits for
/// all processes that it traces, and because the kernel kills the processes that a thread still
/// traces when it ends.
struct RunningThread {
    jobs: Option<mpsc::Sender<Job>>,
    messages: Receiver<TracingMessage>,
    thread: Option<JoinHandle<()>>,
}

impl RunningThread {
    fn start() -> io::Result<RunningThread> {
        let (jobs, taken) = mpsc::channel::<Job>();
        let (sender, messages) = mpsc::channel();
        let thread = std::thread::Builder::new().name("ddfuzz-trace".to_owned());
        let thread = thread.spawn(move || {
            for job in taken {
                let (told, goes_on) = trace(job, &sender);
                if sender.send(told).is_err() || !goes_on {
                    break;
                }
            }
        })?;
        Ok(RunningThread {
            jobs: Some(jobs),
            messages,
            thread: Some(thread),
        })
    }

    fn send(&self, job: Job) -> Result<(), ExecError> {
        let sent = self.jobs.as_ref().and_then(|jobs| jobs.send(job).ok());
        sent.ok_or_else(tracer_is_gone)
    }

    /// Drops the handle of the thread without waiting for the thread's end. The thread ends by
    /// itself when all processes that it traces have ended.
    fn leave(mut self) {
        drop(self.thread.take());
    }
}

impl Drop for RunningThread {
    fn drop(&mut self) {
        self.jobs = None;
        // A panic of the thread has been reported as a run that could not be traced.
        let _ = self.thread.take().map(JoinHandle::join);
    }
}

/// Traces the run `job` in this thread, and reports on `messages` as soon as the process is traced.
/// Returns the last message about the run, and whether this thread can trace another run: false if
/// tracing failed before the run's end, because the thread may still be tracing a process then.
fn trace(mut job: Job, messages: &mpsc::Sender<TracingMessage>) -> (TracingMessage, bool) {
    let (pid, request) = (job.pid, &*job.request);
    let (executes, crash_exit) = (job.executes, job.crash_exit);
    match Tracer::seize(pid, executes, crash_exit, &mut job.cache, request, job.slot) {
        Ok(tracer) => {
            // Nobody listens only if the watchdog has given the run up.
            let _ = messages.send(TracingMessage::Seized);
            let ended = tracer.follow();
            let goes_on = ended.is_ok();
            (TracingMessage::Ended(ended, job.cache), goes_on)
        }
        Err(error) => (TracingMessage::Refused(error, job.cache), true),
    }
}

impl TracingThread {
    /// Lets the process `tracee` run, which waits to be traced, and traces it until it ends. If the
    /// run exceeds a limit of `start`, interrupts the run to find the call that does not return,
    /// and ends it. Returns the trace (how the run ended, with a snapshot of the failure) and the
    /// reason for which the run was interrupted (`None` if it was not). Returns `None` instead of
    /// both if the system refuses ptrace; the process then still waits. `slot` is the address of
    /// the stack slot of a wrong return address, or `None`: with a slot, the snapshot names the
    /// function whose return address was overwritten there. `cache` is the cache of modules, which
    /// the run uses and updates.
    ///
    /// # Errors
    /// When the process is gone, tracing it fails for another reason, or the run is abandoned. The
    /// tracing thread and the `cache` of modules are lost then; the next run begins with new ones.
    pub(super) fn follow(
        &mut self,
        tracee: &mut dyn Tracee,
        start: &dyn Start,
        cache: &mut ModuleCache,
        slot: Option<u64>,
    ) -> Result<Option<(Trace, Option<InterruptReason>)>, ExecError> {
        let held = PidFd::new(tracee.pid());
        let held = held.map_err(ExecError::system("holding the target's process"))?;
        let request = Arc::new(CutOffRequest::within(start.limits().memory));
        let readers = tracee.output_readers();
        let thread = match self.0.take() {
            Some(thread) => thread,
            None => RunningThread::start().map_err(ExecError::system("starting a thread"))?,
        };
        thread.send(Job {
            pid: tracee.pid(),
            executes: tracee.executes(),
            crash_exit: start.crash_exit(),
            cache: Box::new(cache.take()),
            request: Arc::clone(&request),
            slot,
        })?;
        match thread.messages.recv() {
            Ok(TracingMessage::Seized) => {}
            Ok(TracingMessage::Refused(error, used)) => {
                (*cache, self.0) = (*used, Some(thread));
                return match error {
                    Errno::EPERM | Errno::ENOSYS => Ok(None),
                    error => Err(ExecError::system("tracing the target")(error.into())),
                };
            }
            _ => return Err(tracer_is_gone()),
        }
        if let Err(error) = tracee.release() {
            held.kill();
            return Err(error);
        }
        let watched = Watched {
            process: &held,
            limits: start.limits(),
            readers,
            request: &request,
            abandon_when: start.abandon_when(),
        };
        match collect(&thread.messages, &watched) {
            Ok((trace, used)) => {
                (*cache, self.0) = (*used, Some(thread));
                Ok(Some((trace, request.given())))
            }
            Err(ExecError::Abandoned) => {
                thread.leave();
                Err(ExecError::Abandoned)
            }
            Err(error) => Err(error),
        }
    }
}

/// A traced run, with what the watchdog needs to wait for its end and to interrupt it.
struct Watched<'a> {
    process: &'a PidFd,
    limits: Limits,
    /// Ids of the threads that read what the run writes to its pipes.
    readers: Vec<Pid>,
    /// The request to interrupt the run, which the watchdog makes when the run exceeds a limit.
    request: &'a CutOffRequest,
    abandon_when: AbandonWhen,
}

/// Waits for the end of the traced run `watched`, and interrupts the run if it exceeds a limit.
/// `messages` are those of the tracing thread. Returns how the run ended, and the cache of modules
/// that the run used; the result has a snapshot of the process only if the snapshot explains the
/// end ([`explains`]). Fails if the run is abandoned, or if tracing fails.
fn collect(
    messages: &mpsc::Receiver<TracingMessage>,
    watched: &Watched<'_>,
) -> Result<(Trace, Box<ModuleCache>), ExecError> {
    let (last, killed) = watched.await_end(messages)?;
    let request = watched.request;
    let (mut trace, cache) = match last {
        Some(TracingMessage::Ended(Ok(trace), cache)) => (trace, cache),
        Some(TracingMessage::Ended(Err(error), _)) => {
            return Err(ExecError::system("waiting for the target")(error.into()));
        }
        _ => return Err(tracer_is_gone()),
    };
    if killed && trace.ended == Ended::Signal(libc::SIGKILL) {
        trace.ended = match request.given() {
            Some(InterruptReason::Memory) => Ended::OutOfMemory,
            _ => Ended::Timeout,
        };
    }
    let ended = trace.ended;
    trace.snapshot = trace.snapshot.filter(|it| explains(it, ended));
    Ok((trace, cache))
}

/// Checks whether a snapshot explains how its run ended: it was taken at a signal and the run died
/// of a signal, at an exit with the status of the run, or at the limit that the run exceeded. So a
/// signal that the target handled does not explain a later exit.
fn explains(snapshot: &Snapshot, ended: Ended) -> bool {
    match (snapshot.event, ended) {
        (Event::Signal { .. }, Ended::Signal(_)) => true,
        (Event::Exit(status), Ended::Exit(ended)) => status == ended,
        (Event::OutOfTime, Ended::Timeout) | (Event::OutOfMemory, Ended::OutOfMemory) => true,
        _ => false,
    }
}

fn tracer_is_gone() -> ExecError {
    ExecError::system("tracing the target")(io::ErrorKind::BrokenPipe.into())
}

/// A process, held by a file descriptor (pidfd), which unlike a process id is never reused.
pub(crate) struct PidFd {
    pid: Pid,
    descriptor: OwnedFd,
}

impl PidFd {
    /// Opens a pidfd of the live process `pid`.
    ///
    /// # Errors
    /// When the process is gone or no descriptor is left.
    pub(crate) fn new(pid: Pid) -> std::io::Result<PidFd> {
        // SAFETY: the call takes two numbers and gives a new descriptor or an error.
        let descriptor = unsafe { libc::syscall(libc::SYS_pidfd_open, pid.as_raw(), 0) };
        if descriptor < 0 {
            return Err(std::io::Error::last_os_error());
        }
        // SAFETY: the descriptor is new and owned by nobody else.
        let descriptor = unsafe { OwnedFd::from_raw_fd(descriptor as i32) };
        Ok(PidFd { pid, descriptor })
    }

    /// Kills the process; does nothing if it has ended.
    pub(crate) fn kill(&self) {
        // SAFETY: the call takes numbers and a null pointer, which stands for no details.
        unsafe {
            libc::syscall(
                libc::SYS_pidfd_send_signal,
                self.descriptor.as_raw_fd(),
                libc::SIGKILL,
                std::ptr::null::<libc::siginfo_t>(),
                0,
            );
        }
    }

    /// Sends the process a `SIGSTOP` at which the tracing thread searches for the call that hangs;
    /// does nothing if the process has ended.
    fn interrupt(&self) {
        // SAFETY: all of it may be zero, and the system takes no more than what is filled in.
        let mut info: libc::siginfo_t = unsafe { std::mem::zeroed() };
        (info.si_signo, info.si_code) = (libc::SIGSTOP, libc::SI_QUEUE);
        let words = (&raw mut info).cast::<usize>();
        // SAFETY: a queued signal's value stands behind three numbers (padded to two words), and
        // behind those the sender's process and user, one word: within the structure.
        unsafe { words.add(3).write(COOKIE) };
        // SAFETY: the call takes numbers and a pointer to a whole structure.
        unsafe {
            libc::syscall(
                libc::SYS_pidfd_send_signal,
                self.descriptor.as_raw_fd(),
                libc::SIGSTOP,
                &raw const info,
                0,
            );
        }
    }

    /// Returns the CPU time that the process has used; 0 once it has ended.
    fn cpu(&self) -> Duration {
        let time = ClockId::pid_cpu_clock_id(self.pid).and_then(|clock| clock.now());
        time.map(Duration::from).unwrap_or_default()
    }
}

/// Shortest and longest time between two checks whether a run exceeds its time or memory limit.
const LOOKS: (Duration, Duration) = (Duration::from_millis(2), Duration::from_millis(10));

/// A run that exceeded its limit on wall time counts as asleep if none of its threads has run for
/// this time.
const ASLEEP: Duration = Duration::from_millis(150);
/// Time in which a run that sleeps in the kernel, or has stopped itself, must react when the
/// watchdog interrupts it; else it is killed.
const NOTICED: Duration = Duration::from_secs(1);
/// Time after the interruption by the watchdog in which a run must stop on a busy machine, where it
/// may have to wait for a processor; else it is killed.
const SCHEDULED: Duration = Duration::from_secs(20);
/// Wall time that the tracing thread has to find the call that does not return; then the process is
/// killed. The search itself takes one second of the thread's active time.
const FOUND: Duration = Duration::from_secs(30);

impl Watched<'_> {
    /// Waits for the end of the run, and interrupts the run if it exceeds a limit. Returns the
    /// message that the tracing thread sends on `done` at the run's end (`None` if the thread is
    /// gone), and whether the process was killed because the run did not end in time after the
    /// interruption. Fails if the run is abandoned.
    fn await_end<T>(&self, done: &Receiver<T>) -> Result<(Option<T>, bool), ExecError> {
        let (process, limits, began) = (self.process, self.limits, Instant::now());
        let starved = SchedulingDelay::new(process.pid, began);
        let mut starved = starved.with_readers(self.readers.clone());
        loop {
            self.check_abandoned()?;
            let wall_left = limits.wall.saturating_sub(began.elapsed());
            // A quick end, which is the rule, is not looked at.
            let looked_at = began.elapsed() > LOOKS.1;
            let wall_is_over = looked_at && starved.wall_is_over(limits.wall);
            let tree = match looked_at {
                true => tree_cpu(process.pid),
                false => Duration::ZERO,
            };
            let cpu_left = limits.cpu.saturating_sub(process.cpu().max(tree));
            if looked_at && tree_exceeds(process.pid, limits.memory) {
                return self.cut_off(done, InterruptReason::Memory);
            }
            if cpu_left.is_zero() {
                return self.cut_off(done, InterruptReason::Running);
            }
            if wall_is_over {
                let before = switches(process.pid);
                match done.recv_timeout(ASLEEP) {
                    Ok(message) => return Ok((Some(message), false)),
                    Err(RecvTimeoutError::Timeout) => {}
                    Err(RecvTimeoutError::Disconnected) => return Ok((None, false)),
                }
                // A delay is known only when it has ended.
                if !starved.wall_is_over(limits.wall) {
                    continue;
                }
                let is_read = (self.readers.iter()).any(|reader| own_thread_is_runnable(*reader));
                let ran = is_read || is_runnable(process.pid) || before != switches(process.pid);
                let reason = if ran {
                    InterruptReason::Delayed
                } else {
                    InterruptReason::Asleep
                };
                return self.cut_off(done, reason);
            }
            // Threads use CPU time faster than the wall clock runs, so look before it can be over.
            let pause = (cpu_left / 4).min(wall_left).clamp(LOOKS.0, LOOKS.1);
            match done.recv_timeout(pause) {
                Ok(message) => return Ok((Some(message), false)),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return Ok((None, false)),
            }
        }
    }

    /// If the run is abandoned (a condition of `abandon_when` is met), kills its process and fails.
    fn check_abandoned(&self) -> Result<(), ExecError> {
        if !self.abandon_when.is_met() {
            return Ok(());
        }
        self.process.kill();
        Err(ExecError::Abandoned)
    }

    /// Ends a run that has exceeded a limit; `reason` says which one. Asks the tracing thread to
    /// find the call that does not return and then to end the run; kills the process if that takes
    /// too long. Returns the message that the tracing thread sends on `done` at the run's end
    /// (`None` if the thread is gone), and whether this function has killed the process. Fails if
    /// the run is abandoned.
    fn cut_off<T>(
        &self,
        done: &Receiver<T>,
        reason: InterruptReason,
    ) -> Result<(Option<T>, bool), ExecError> {
        let (process, request) = (self.process, self.request);
        request.give(reason);
        let began = Instant::now();
        let mut killed = false;
        loop {
            self.check_abandoned()?;
            let elapsed = began.elapsed();
            let over = match request.is_taken() {
                true => elapsed >= FOUND,
                false => {
                    let deaf = request.has_stopped() || sleeps(process.pid);
                    elapsed >= SCHEDULED || elapsed >= NOTICED && deaf
                }
            };
            if over {
                process.kill();
                killed = true;
            } else if !request.is_taken() {
                // A signal may be lost: the target's own `SIGCONT` takes it away.
                process.interrupt();
            }
            match done.recv_timeout(LOOKS.0) {
                Ok(message) => return Ok((Some(message), killed)),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return Ok((None, killed)),
            }
        }
    }
}
