//! Finds crashes of descendants, which count as crashes of the run (docs/src/keys.md;
//! docs/decisions/0034).
//!
//! Runs are not traced until one has started other processes. That run is repeated, and all later
//! runs are made, with the whole process tree traced.

use nix::{errno::Errno, sys::ptrace, unistd::Pid};
use std::time::{Duration, Instant};
use std::{sync::mpsc, thread::JoinHandle};

use crate::traceable::{Traceable, Traced};
use crate::tracing::{process_of, resume, seize_tree, wait};
use crate::{
    CoverageReporting, CoveredCode, Ended, ExecError, Executor, Freshness, NotCovered,
    RefusalReason, Run, RunCoverage, Target, TimeLimit, Way, Written, proc_tree::lives,
};

/// Number of runs, at the beginning, that are traced if the program can start processes. Without
/// tracing, the fork server of the execution method `command` misses children of a program that
/// ignores SIGCHLD.
const CALIBRATION: u32 = 3;
/// How often a traced run is tried, at most, if its fork server or its tracer fails.
const MOST_TRIES: u32 = 10;
/// Time after the first try of a traced run within which it is tried again if its fork server or
/// its tracer fails.
const RETRY_TIME: Duration = Duration::from_secs(5);

/// Whether the next run of a target is traced, to find crashes of processes that the target starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum TraceMode {
    /// The next runs, as many as the number says, are traced to learn whether they start processes.
    Calibrating(u32),
    /// The next run is not traced. If it starts processes, it is made again and traced.
    Bare,
    /// The next run and all later runs are traced.
    Traced,
    /// The next run is not traced, because the system refuses to trace.
    Refused,
}

/// An executor that does not trace its runs, but can tell whether a run has started processes.
pub(crate) trait Untraced: Executor {
    /// Whether the last run of the target started other processes.
    fn forked(&self) -> bool;
    /// Whether the program may start processes, according to its ELF file.
    fn may_fork(&self) -> bool;
}

/// An executor that reports the crash of a process started by the target as the crash of the run.
pub(crate) struct TreeExecutor {
    bare: Box<dyn Untraced>,
    target: Target,
    traced: Option<Traceable>,
    mode: TraceMode,
    /// Whether runs report length and hash of what they write to stdout and stderr; such runs are
    /// not traced.
    reports: bool,
    /// Which of the target's runs report their coverage: all, none, or those that reach something
    /// new.
    reporting: CoverageReporting,
    /// Whether the last call of the executor made a traced run, which reports no coverage.
    was_traced: bool,
}

impl TreeExecutor {
    /// Wraps the executor `bare` of `target`, so that a crash of a process which the target has
    /// started is found: some runs, or all, are made under a tracer, which `bare` does not use.
    pub(crate) fn new(bare: Box<dyn Untraced>, target: &Target) -> TreeExecutor {
        let mode = match bare.may_fork() && bare.way() == Way::Command {
            true => TraceMode::Calibrating(CALIBRATION),
            false => TraceMode::Bare,
        };
        TreeExecutor {
            bare,
            target: target.clone(),
            traced: None,
            mode,
            reports: false,
            reporting: CoverageReporting::Nothing,
            was_traced: false,
        }
    }

    /// Runs the target on `input`, traces all processes of the run, and returns what the tracer has
    /// seen. If the fork server or the tracer fails, tries again, [`MOST_TRIES`] times in all and
    /// for [`RETRY_TIME`] at most. Returns `None` if all tries have failed, or if the system
    /// refuses to trace; in the latter case, no later run is traced either. Fails if the run is
    /// abandoned, or if the target cannot be prepared for tracing.
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
                Err(ExecError::Abandoned) => return Err(ExecError::Abandoned),
                Err(_) if began.elapsed() > RETRY_TIME => return Ok(None),
                Err(_) => {}
            }
        }
        Ok(None)
    }

    /// Whether the executor was asked for the coverage of runs and the target can report it.
    fn covers(&self) -> bool {
        self.reporting != CoverageReporting::Nothing && self.bare.counter_count().is_some()
    }

    fn traceable(&mut self) -> Result<&Traceable, ExecError> {
        match &mut self.traced {
            Some(traceable) => Ok(traceable),
            empty => Ok(empty.insert(Traceable::forking_late(&self.target, self.bare.way())?)),
        }
    }

    /// Runs `input` again, now traced, since its untraced run `bare` has started a process. Returns
    /// the traced run, or `bare` if tracing fails. The coverage that is reported stays that of
    /// `bare`: a breakpoint is removed when it is hit, so the traced run does not hit it again.
    fn follow_again(&mut self, input: &[u8], bare: Run) -> Result<Run, ExecError> {
        self.mode = TraceMode::Traced;
        let Some(followed) = self.follow(input)? else {
            return Ok(bare);
        };
        self.update_mode(followed.forked);
        self.was_traced = !(bare.ended.is_exit() && self.covers());
        self.end_unstoppable(&followed.run);
        Ok(followed.run)
    }

    /// Ends the fork server of traced runs if `run` was killed at a limit: a process that could not
    /// be killed at once may still have the file with the input open.
    fn end_unstoppable(&mut self, run: &Run) {
        if matches!(run.ended, Ended::Timeout | Ended::OutOfMemory) {
            self.traced = None;
        }
    }

    /// Chooses after a traced run whether the next run is traced. If a run has started a process
    /// (`forked`), all later runs are traced; as long as none has, only the first [`CALIBRATION`]
    /// runs are traced.
    fn update_mode(&mut self, forked: bool) {
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
        self.was_traced = false;
        if self.reports {
            return self.bare.run(input);
        }
        if matches!(self.mode, TraceMode::Calibrating(_) | TraceMode::Traced)
            && let Some(followed) = self.follow(input)?
        {
            self.update_mode(followed.forked);
            self.was_traced = true;
            self.end_unstoppable(&followed.run);
            if followed.run.ended.is_exit() && self.covers() {
                // A traced run has no breakpoints, so that its coverage comes from a second,
                // untraced run.
                self.bare.run(input)?;
                self.was_traced = false;
            }
            return Ok(followed.run);
        }
        // Also if traced runs keep failing: the untraced run decides how to report a target that
        // breaks its server.
        let run = self.bare.run(input)?;
        match self.bare.forked() && self.mode == TraceMode::Bare {
            true => self.follow_again(input, run),
            false => Ok(run),
        }
    }

    fn run_some(&mut self, inputs: &[&[u8]]) -> Result<Vec<Run>, ExecError> {
        if inputs.is_empty() {
            return Ok(Vec::new());
        }
        if self.mode != TraceMode::Bare {
            return Ok(vec![self.run(inputs[0])?]);
        }
        self.was_traced = false;
        let mut runs = self.bare.run_some(inputs)?;
        if self.bare.forked()
            && let Some(last) = runs.pop()
        {
            runs.push(match inputs.get(runs.len()) {
                Some(input) => self.follow_again(input, last)?,
                None => last,
            });
        }
        Ok(runs)
    }

    fn way(&self) -> Way {
        self.bare.way()
    }

    fn freshness(&self) -> Freshness {
        self.bare.freshness()
    }

    fn report_output(&mut self, on: bool) -> Result<(), ExecError> {
        self.reports = on;
        self.bare.report_output(on)
    }

    fn written(&self) -> Option<[Written; 2]> {
        self.bare.written()
    }

    fn refusals(&self) -> Vec<(RefusalReason, u64)> {
        self.bare.refusals()
    }

    fn corrected(&mut self) -> Vec<(Vec<u8>, Run)> {
        self.bare.corrected()
    }

    fn check_now(&mut self) -> Result<(), ExecError> {
        self.bare.check_now()
    }

    fn counter_count(&self) -> Option<usize> {
        self.bare.counter_count()
    }

    fn cover_blocks(&mut self) -> Result<Result<usize, NotCovered>, ExecError> {
        self.bare.cover_blocks()
    }

    fn code(&self) -> Option<CoveredCode> {
        self.bare.code()
    }

    fn report_coverage(&mut self, reporting: CoverageReporting) {
        self.reporting = reporting;
        self.bare.report_coverage(reporting);
    }

    fn covered(&self) -> &[RunCoverage] {
        match self.was_traced {
            true => &[],
            false => self.bare.covered(),
        }
    }

    fn limit_time(&mut self, time: TimeLimit) {
        self.bare.limit_time(time);
        self.target.limits = time.within(self.target.limits);
        if let Some(traced) = &self.traced {
            traced.limit_time(time);
        }
    }
}

/// How far the thread that traces a run may lag behind the fork server: within this time it must
/// have seen the end of each process whose end the fork server has seen.
const GRACE: Duration = Duration::from_secs(10);

/// The result of a run in which a tracer followed all processes that the target started.
#[derive(Clone, Copy, Debug)]
struct TracedRun {
    /// Result of the traced run; the crash of a process that the target started counts as the
    /// target's own.
    run: Run,
    forked: bool,
}

/// The thread that traces one run, and a channel on which it reports twice: when it has seized the
/// process, and at the end, what it has observed.
type Tracing = (JoinHandle<()>, mpsc::Receiver<TracerMessage>);

enum TracerMessage {
    Seized(nix::Result<()>),
    Gone(TreeOutcome),
}

/// Runs the target on `input` with its process tree traced, and returns what the tracer has seen;
/// `None` if the system refuses to trace. Fails when the target cannot be started, or when its fork
/// server or tracer breaks.
fn run(target: &Traceable, input: &[u8]) -> Result<Option<TracedRun>, ExecError> {
    let process = target.start(input, false)?;
    let Some((tracer, news)) = seize(&process)? else {
        return Ok(None);
    };
    let mut run = release(process)?;
    // All processes have ended, or the server would not have answered. A process that the kernel
    // cannot kill would block the tracer for ever.
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

/// Lets the stopped process of a traced run start, waits for its end, and returns the result of the
/// run. On an error the process is dropped, which kills it.
fn release(mut process: Traced) -> Result<Run, ExecError> {
    process.release()?;
    process.wait_for_run()
}

/// Starts a thread that seizes the process of a run with ptrace and traces it to its end; `None` if
/// the system refuses to trace. The run needs a separate thread, because a tracer waits for all
/// that it traces, and the kernel kills the traced processes when the tracing thread ends.
fn seize(process: &Traced) -> Result<Option<Tracing>, ExecError> {
    let pid = process.pid();
    let (sender, news) = mpsc::channel();
    let tracer = std::thread::Builder::new()
        .name("ddfuzz-tree".to_owned())
        .spawn(move || match seize_tree(pid) {
            Ok(()) => {
                // Sending fails only if the run was given up.
                let _ = sender.send(TracerMessage::Seized(Ok(())));
                let _ = sender.send(TracerMessage::Gone(TreeOutcome::follow()));
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
    ExecError::system("tracing the descendants of a run")(errno.into())
}

/// What a tracer observed of all processes of one run: whether the target started any, and the
/// first crash.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct TreeOutcome {
    forked: bool,
    /// Signal that killed the process of the tree which crashed first; `None` if none crashed.
    crash: Option<i32>,
}

impl TreeOutcome {
    /// Traces a seized process and all its descendants until all have ended: resumes stopped
    /// processes and delivers their signals. The processes stop only when they fork, execute a
    /// program or get a signal. Returns whether the tree started processes, and the first crash in
    /// it.
    fn follow() -> TreeOutcome {
        let mut seen = TreeOutcome::default();
        // `wait` fails when nothing is left; only this thread reaps what it traces.
        while let Ok((tid, status)) = wait() {
            if libc::WIFSTOPPED(status) {
                seen.handle_stop(tid, status);
            } else if let Ended::Signal(signal) = Ended::from_wait_status(status)
                && Ended::Signal(signal).is_crash(None)
            {
                // All threads of a process die of the signal of one of them.
                seen.crash.get_or_insert(signal);
            }
        }
        seen
    }

    fn handle_stop(&mut self, tid: Pid, status: i32) {
        let signal = libc::WSTOPSIG(status);
        match status >> 16 {
            0 => resume(libc::PTRACE_CONT, tid, signal),
            // A process stopped itself and stays stopped until it is continued or killed.
            libc::PTRACE_EVENT_STOP if signal != libc::SIGTRAP => {
                resume(libc::PTRACE_LISTEN, tid, 0);
            }
            libc::PTRACE_EVENT_FORK | libc::PTRACE_EVENT_VFORK => {
                self.forked = true;
                resume(libc::PTRACE_CONT, tid, 0);
            }
            libc::PTRACE_EVENT_CLONE => {
                self.forked |= ptrace::getevent(tid).is_ok_and(leads_a_process);
                resume(libc::PTRACE_CONT, tid, 0);
            }
            _ => resume(libc::PTRACE_CONT, tid, 0),
        }
    }
}

/// Whether the thread with the id `tid` is the main thread of a process, not a further thread.
fn leads_a_process(tid: i64) -> bool {
    let tid = i32::try_from(tid).map(Pid::from_raw);
    tid.is_ok_and(|tid| process_of(tid) == Some(tid))
}
