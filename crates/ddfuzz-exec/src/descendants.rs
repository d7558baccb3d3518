//! Finds crashes of descendants: they are crashes of the run (crash-keys.md, "What a crash is";
//! docs/decisions/0034).
//!
//! Runs are not traced until one is seen to have had descendants. That run is repeated, and all later
//! ones are made, with the whole tree of processes traced.

use nix::errno::Errno;
use nix::sys::ptrace;
use nix::unistd::Pid;
use std::sync::mpsc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use crate::proc_tree::lives;
use crate::server_executor::ServerExecutor;
use crate::traceable::{Traceable, Traced};
use crate::tracing::{process_of, resume, seize_tree, wait};
use crate::{Ended, ExecError, Executor, Freshness, Run, Target, TimeLimit, Way};

/// How many first runs of a program that can start others are traced, to see whether it does. By
/// `command` the server cannot see it where the program ignores SIGCHLD.
const CALIBRATION: u32 = 3;
/// How often, and for how long, a traced run is repeated whose server or tracer breaks.
const MOST_TRIES: u32 = 10;
const PATIENCE: Duration = Duration::from_secs(5);

/// How the next run is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum TraceMode {
    /// Traced, for this many runs.
    Calibrating(u32),
    /// Not traced.
    Bare,
    /// Traced, as all runs from here on.
    Traced,
    /// Not traced, because the system refuses to trace.
    Refused,
}

/// An executor that reports the crash of a descendant as the crash of its run.
pub(crate) struct TreeExecutor {
    bare: ServerExecutor,
    target: Target,
    traced: Option<Traceable>,
    mode: TraceMode,
}

impl TreeExecutor {
    /// Wraps `bare`, the executor of `target` that does not trace.
    pub(crate) fn new(bare: ServerExecutor, target: &Target) -> TreeExecutor {
        let mode = match bare.may_fork() && bare.way() == Way::Command {
            true => TraceMode::Calibrating(CALIBRATION),
            false => TraceMode::Bare,
        };
        TreeExecutor {
            bare,
            target: target.clone(),
            traced: None,
            mode,
        }
    }

    /// Makes a traced run; `None` where that is not possible, now or ever.
    fn follow(&mut self, input: &[u8]) -> Result<Option<TracedRun>, ExecError> {
        let began = Instant::now();
        for _ in 0..MOST_TRIES {
            match run(self.traceable()?, input) {
                Ok(Some(followed)) => return Ok(Some(followed)),
                Ok(None) => {
                    self.mode = TraceMode::Refused;
                    self.traced = None;
                    return Ok(None);
                }
                Err(_) if began.elapsed() > PATIENCE => return Ok(None),
                Err(_) => {}
            }
        }
        Ok(None)
    }

    fn traceable(&mut self) -> Result<&Traceable, ExecError> {
        match &mut self.traced {
            Some(traceable) => Ok(traceable),
            empty => Ok(empty.insert(Traceable::new(&self.target, self.bare.way())?)),
        }
    }

    /// Chooses the next mode after a traced run.
    fn learn(&mut self, forked: bool) {
        self.mode = match self.mode {
            _ if forked => TraceMode::Traced,
            TraceMode::Calibrating(left) if left > 1 => TraceMode::Calibrating(left - 1),
            TraceMode::Calibrating(_) => TraceMode::Bare,
            mode => mode,
        };
        if self.mode == TraceMode::Bare {
            self.traced = None;
        }
    }
}

impl Executor for TreeExecutor {
    fn run(&mut self, input: &[u8]) -> Result<Run, ExecError> {
        loop {
            if matches!(self.mode, TraceMode::Calibrating(_) | TraceMode::Traced)
                && let Some(followed) = self.follow(input)?
            {
                self.learn(followed.forked);
                if matches!(followed.run.ended, Ended::Timeout | Ended::OutOfMemory) {
                    self.traced = None; // what could not be killed at once may hold its input
                }
                return Ok(followed.run);
            }
            // Also where traced runs break again and again: of what a target does to those who
            // run it, this says the last word.
            let run = self.bare.run(input)?;
            if !self.bare.forked() || self.mode != TraceMode::Bare {
                return Ok(run);
            }
            self.mode = TraceMode::Traced;
        }
    }

    fn way(&self) -> Way {
        self.bare.way()
    }

    fn freshness(&self) -> Freshness {
        self.bare.freshness()
    }

    fn coverage(&mut self) -> Option<&[u8]> {
        self.bare.coverage()
    }

    fn limit_time(&mut self, time: TimeLimit) {
        self.bare.limit_time(time);
        self.target.limits = time.within(self.target.limits);
        if let Some(traced) = &self.traced {
            traced.limit_time(time);
        }
    }
}

/// How long the tracer may take to see the ends of processes that the server has collected.
const GRACE: Duration = Duration::from_secs(10);

/// A traced run.
#[derive(Clone, Copy, Debug)]
struct TracedRun {
    /// The run; where a descendant crashed, that is its ending.
    run: Run,
    /// Whether there were descendants.
    forked: bool,
}

/// The tracing thread, and the channel of its messages.
type Tracing = (JoinHandle<()>, mpsc::Receiver<TracerMessage>);

/// A message of the tracing thread.
enum TracerMessage {
    Seized(nix::Result<()>),
    Gone(TreeOutcome),
}

/// Runs the target on `input`; `None` where the system refuses to trace.
///
/// # Errors
/// When the target cannot be started, or what serves or traces it breaks.
fn run(target: &Traceable, input: &[u8]) -> Result<Option<TracedRun>, ExecError> {
    let process = target.start(input, false)?;
    let Some((tracer, news)) = seize(&process)? else {
        return Ok(None);
    };
    let mut run = release(process)?;
    // All have ended, or the server would not have answered. What the kernel cannot kill would
    // hold the tracer for ever.
    let Ok(TracerMessage::Gone(seen)) = news.recv_timeout(GRACE) else {
        return Err(tracing(Errno::ETIMEDOUT));
    };
    let _ = tracer.join(); // it has nothing left to do
    if let Some(signal) = seen.crash {
        run.ended = Ended::Signal(signal);
    }
    Ok(Some(TracedRun {
        run,
        forked: seen.forked,
    }))
}

/// Releases the process and waits for its end. Where this fails the process is dropped, and so killed.
fn release(mut process: Traced) -> Result<Run, ExecError> {
    process.release()?;
    process.wait_for_run()
}

/// Seizes the process from a thread of its own: what that waits for is what it traces, and when
/// it ends the kernel kills whatever it still traces.
fn seize(process: &Traced) -> Result<Option<Tracing>, ExecError> {
    let pid = process.pid();
    let (sender, news) = mpsc::channel();
    let tracer = std::thread::Builder::new()
        .name("ddfuzz-tree".to_owned())
        .spawn(move || match Tracer::seize(pid) {
            Ok(tracer) => {
                // Nobody listens only if the run has been given up.
                let _ = sender.send(TracerMessage::Seized(Ok(())));
                let _ = sender.send(TracerMessage::Gone(tracer.follow()));
            }
            Err(errno) => drop(sender.send(TracerMessage::Seized(Err(errno)))),
        })
        .map_err(ExecError::system("starting a thread"))?;
    match news.recv() {
        Ok(TracerMessage::Seized(Ok(()))) => Ok(Some((tracer, news))),
        Ok(TracerMessage::Seized(Err(Errno::EPERM | Errno::ENOSYS))) if lives(pid) => Ok(None),
        Ok(TracerMessage::Seized(Err(errno))) => Err(tracing(errno)),
        _ => Err(tracing(Errno::ECHILD)),
    }
}

fn tracing(errno: Errno) -> ExecError {
    ExecError::System {
        what: "tracing the descendants of a run".to_owned(),
        source: errno.into(),
    }
}

/// What the tracer saw of a tree of processes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct TreeOutcome {
    /// Whether one of them started a process.
    forked: bool,
    /// The signal of the first of them that died of a crash.
    crash: Option<i32>,
}

/// Traces a process and all that descends from it. It stops them only where they fork, execute
/// another program or get a signal.
struct Tracer {
    seen: TreeOutcome,
}

impl Tracer {
    /// Seizes a process that waits before its `execve`.
    ///
    /// # Errors
    /// As [`seize_tree`].
    fn seize(pid: Pid) -> nix::Result<Tracer> {
        seize_tree(pid)?;
        Ok(Tracer {
            seen: TreeOutcome::default(),
        })
    }

    /// Lets them run, with every signal delivered, until none is left.
    fn follow(mut self) -> TreeOutcome {
        // Nothing left to wait for is the end; nobody but this thread takes the ends away.
        while let Ok((tid, status)) = wait() {
            if libc::WIFSTOPPED(status) {
                self.stopped(tid, status);
            } else if let Ended::Signal(signal) = Ended::from_wait_status(status)
                && Ended::Signal(signal).is_crash(None)
            {
                // Threads of one process all die of the signal of one.
                self.seen.crash.get_or_insert(signal);
            }
        }
        self.seen
    }

    fn stopped(&mut self, tid: Pid, status: i32) {
        let signal = libc::WSTOPSIG(status);
        match status >> 16 {
            0 => resume(libc::PTRACE_CONT, tid, signal),
            // One stopped itself: it stays so until it is continued or killed.
            libc::PTRACE_EVENT_STOP if signal != libc::SIGTRAP => {
                resume(libc::PTRACE_LISTEN, tid, 0);
            }
            libc::PTRACE_EVENT_FORK | libc::PTRACE_EVENT_VFORK => {
                self.seen.forked = true;
                resume(libc::PTRACE_CONT, tid, 0);
            }
            libc::PTRACE_EVENT_CLONE => {
                self.seen.forked |= ptrace::getevent(tid).is_ok_and(leads_a_process);
                resume(libc::PTRACE_CONT, tid, 0);
            }
            _ => resume(libc::PTRACE_CONT, tid, 0),
        }
    }
}

/// Whether this is a process, and not a further thread of one.
fn leads_a_process(tid: i64) -> bool {
    let tid = i32::try_from(tid).map(Pid::from_raw);
    tid.is_ok_and(|tid| process_of(tid) == Some(tid))
}
