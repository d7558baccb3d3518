//! The interface between triage and ddfuzz-exec: starts the target in a process that can be traced.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use nix::unistd::Pid;

use crate::{Settings, Triager};
use ddfuzz_exec::{
    AbandonWhen, CrashMessages, CrashSnapshots, Ended, ExecError, Limits, RerunReason, Run, Target,
    TimeLimit, Traceable, Traced, Way, WithSearch, start_with_tracer,
};

/// A process of the target that waits to be traced, either before its `execve` or before its
/// `main`.
///
/// The waiting process need not be a child of ddfuzz's process. Dropping this handle kills it.
pub trait Tracee {
    /// Returns the id of the waiting process; it is valid until the process has ended and its
    /// parent has waited for it.
    fn pid(&self) -> Pid;

    /// Checks whether the process waits before its `execve` of the target's program; false if it
    /// was forked from a running target.
    fn executes(&self) -> bool {
        true
    }

    /// Lets the process, which waits to be traced, run on.
    ///
    /// # Errors
    /// When the process is gone.
    fn release(&mut self) -> Result<(), ExecError>;

    /// Returns the CPU time that the traced run has used, once its process has ended; zero where it
    /// is unknown.
    fn cpu(&mut self) -> Duration {
        Duration::ZERO
    }

    /// Returns the number of input bytes that the traced run has read, once its process has ended;
    /// `None` where it is unknown.
    fn read(&self) -> Option<u64> {
        None
    }

    /// Returns the ids of ddfuzz's threads that empty the pipes to which the traced run writes;
    /// empty where there are none.
    fn output_readers(&self) -> Vec<Pid> {
        Vec::new()
    }

    /// Returns the last 4 KiB that the traced run wrote to stderr; they are complete only after the
    /// process has ended.
    fn stderr_tail(&mut self) -> Vec<u8>;

    /// Returns what the run printed about its crash: stderr, and a sanitizer's report. The default
    /// implementation returns only the last 4 KiB of stderr. The result is complete only after all
    /// processes of the run have ended.
    fn crash_messages(&mut self) -> CrashMessages {
        CrashMessages {
            stderr: self.stderr_tail(),
            report: Vec::new(),
        }
    }
}

/// The result of a run of the target without ptrace.
#[derive(Clone, Debug)]
pub struct Untraced {
    /// How the run ended: by a signal, with an exit status, or by exceeding a limit.
    pub ended: Ended,
    /// What the run printed about its crash: beginning and end of stderr, and the report of a
    /// sanitizer.
    pub messages: CrashMessages,
    /// The copies of registers and stack that dying processes of the run made of themselves; `None`
    /// where the target does not support that.
    pub copies: Option<Arc<CrashSnapshots>>,
    /// Number of input bytes that the run has read; `None` where it is unknown.
    pub read: Option<u64>,
}

/// Starts a fuzzing target for triage, one run at a time, so that it can be traced.
pub trait Start: Send {
    /// Starts the target on `input` and stops it before its `execve`, or, if it is forked from a
    /// running target, before its `main`. Without `aslr`, the target's addresses are not
    /// randomized, if the system allows that.
    ///
    /// # Errors
    /// When the target cannot be started.
    fn start(&mut self, input: &[u8], aslr: bool) -> Result<Box<dyn Tracee>, ExecError>;

    /// Runs the target on `input` without ptrace, for systems that refuse ptrace, and returns how
    /// the run ended and what it printed. If the target supports it, dying processes make copies of
    /// their registers and stack. Without `aslr`, the target's addresses are not randomized.
    ///
    /// # Errors
    /// When the target cannot be run.
    fn run_untraced(&mut self, input: &[u8], aslr: bool) -> Result<Untraced, ExecError>;

    /// Runs the target on an input again, without ptrace, with options that make it print more
    /// about its crash; `_why` says what is wanted, such as a backtrace. Returns how the run ended
    /// and what it printed; `None` where that is not supported.
    ///
    /// # Errors
    /// When the target cannot be run.
    fn run_again(
        &mut self,
        _input: &[u8],
        _why: RerunReason,
    ) -> Result<Option<Untraced>, ExecError> {
        Ok(None)
    }

    /// Returns the compiler options of the target that decide which crashes it can show:
    /// sanitizers, as `-fsanitize=` names them, and Rust's debug assertions; `None` where unknown.
    fn instrumentation(&self) -> Option<Vec<String>> {
        None
    }

    /// Returns the sanitizers of all programs that a run of the target on an input starts (the
    /// target may be a script); `None` where unknown.
    ///
    /// # Errors
    ///
    /// When the target cannot be run.
    fn sanitizers_of_run(&mut self, _input: &[u8]) -> Result<Option<Vec<String>>, ExecError> {
        Ok(None)
    }

    /// Returns the path of the target's program; `None` where it is unknown.
    fn program(&self) -> Option<PathBuf> {
        None
    }

    /// Checks whether the target can end by a Rust panic; true where that is unknown.
    fn may_panic(&self) -> bool {
        true
    }

    /// Returns true if runs without address randomization are forked from the loaded target, which
    /// takes about as long as a run of a fork server.
    fn forks(&self) -> bool {
        false
    }

    /// Replaces the time limits of all later runs of the target by `_time`. Does nothing where
    /// limits are fixed.
    fn limit_time(&mut self, _time: TimeLimit) {}

    /// Returns how the target is executed: new process, fork server, or in-process harness.
    fn way(&self) -> Way;

    /// Returns the time and memory limits of each run of the target.
    fn limits(&self) -> Limits;

    /// Returns the exit status of the target that counts as a crash; `None` if no exit status does.
    fn crash_exit(&self) -> Option<i32>;

    /// Returns the conditions under which runs of the target are abandoned (killed at once, without
    /// a result). By default, runs are never abandoned.
    fn abandon_when(&self) -> AbandonWhen {
        AbandonWhen::default()
    }
}

impl Tracee for Traced {
    fn pid(&self) -> Pid {
        Traced::pid(self)
    }

    fn executes(&self) -> bool {
        Traced::executes(self)
    }

    fn release(&mut self) -> Result<(), ExecError> {
        Traced::release(self)
    }

    fn cpu(&mut self) -> Duration {
        Traced::cpu(self)
    }

    fn read(&self) -> Option<u64> {
        Traced::read(self)
    }

    fn output_readers(&self) -> Vec<Pid> {
        Traced::output_readers(self)
    }

    fn stderr_tail(&mut self) -> Vec<u8> {
        Traced::stderr_tail(self)
    }

    fn crash_messages(&mut self) -> CrashMessages {
        Traced::crash_messages(self)
    }
}

impl Start for Traceable {
    fn start(&mut self, input: &[u8], aslr: bool) -> Result<Box<dyn Tracee>, ExecError> {
        let run = Traceable::start(self, input, aslr)?;
        Ok(Box::new(run.dying_with_server()))
    }

    fn run_untraced(&mut self, input: &[u8], aslr: bool) -> Result<Untraced, ExecError> {
        let Some((run, copies)) = self.start_copied(input, aslr)? else {
            let (ended, said) = Traceable::run_again(self, input, aslr, RerunReason::Signals)?;
            let copies = None;
            return Ok(Untraced {
                ended,
                messages: said,
                copies,
                read: None,
            });
        };
        let mut run = run.dying_with_server();
        run.release()?;
        let Run { ended, read, .. } = run.wait_for_run()?;
        Ok(Untraced {
            ended,
            messages: run.crash_messages(),
            copies: Some(copies),
            read,
        })
    }

    fn run_again(&mut self, input: &[u8], why: RerunReason) -> Result<Option<Untraced>, ExecError> {
        let (ended, said) = Traceable::run_again(self, input, false, why)?;
        Ok(Some(Untraced {
            ended,
            messages: said,
            copies: None,
            read: None,
        }))
    }

    fn instrumentation(&self) -> Option<Vec<String>> {
        Traceable::instrumentation(self)
    }

    fn sanitizers_of_run(&mut self, input: &[u8]) -> Result<Option<Vec<String>>, ExecError> {
        Traceable::sanitizers_of_run(self, input).map(Some)
    }

    fn program(&self) -> Option<PathBuf> {
        Some(Traceable::program(self))
    }

    fn may_panic(&self) -> bool {
        Traceable::may_panic(self)
    }

    fn forks(&self) -> bool {
        Traceable::forks(self)
    }

    fn limit_time(&mut self, time: TimeLimit) {
        Traceable::limit_time(self, time);
    }

    fn way(&self) -> Way {
        Traceable::way(self)
    }

    fn limits(&self) -> Limits {
        Traceable::limits(self)
    }

    fn crash_exit(&self) -> Option<i32> {
        Traceable::crash_exit(self)
    }

    fn abandon_when(&self) -> AbandonWhen {
        Traceable::abandon_when(self)
    }
}

impl Triager {
    /// Creates a triager of `target` with default settings; `way` says how the target is executed
    /// (new process, fork server, in-process harness).
    ///
    /// # Errors
    /// When the program is missing or cannot be executed.
    pub fn of_target(target: &Target, way: Way) -> Result<Triager, ExecError> {
        let start = Traceable::forking(target, way)?;
        Ok(Triager::with_settings(Box::new(start), Settings::default()))
    }

    /// Creates a triager of `target`, and an executor for a search (such as a minimization), which
    /// share one fork server. `way` says how the target is executed; if it is `None`, the fastest
    /// way is chosen. Returns `None` for targets that are run by their `main` instead of an entry
    /// function (such as `LLVMFuzzerTestOneInput`), and where no such server works.
    ///
    /// # Errors
    /// When the program is missing or cannot be executed.
    pub fn with_executor(
        target: &Target,
        way: Option<Way>,
    ) -> Result<Option<WithSearch<Triager>>, ExecError> {
        let started = start_with_tracer(target, way)?;
        Ok(started.map(|(traceable, executor)| {
            let triager = Triager::with_settings(Box::new(traceable), Settings::default());
            (triager, executor)
        }))
    }
}
