//! What triage needs of `exec`: a process that can be seized before it runs the target.

use std::path::PathBuf;
use std::sync::Arc;

use nix::unistd::Pid;

use crate::{Settings, Triager};
use ddfuzz_exec::{
    CrashMessages, CrashSnapshots, Ended, ExecError, Limits, RerunReason, Target, Traceable,
    Traced, Way,
};

/// A process of the target that waits, to be seized: just before its `execve`, or where its `main`
/// is called.
///
/// It need not be our child. Dropping it kills the process, if it still lives.
pub trait Tracee {
    /// Its process id, valid until its end has been collected.
    fn pid(&self) -> Pid;

    /// Whether it is yet to execute the target; else it was forked from the target, and is it.
    fn executes(&self) -> bool {
        true
    }

    /// Lets it go on: to its `execve`, where there is one.
    ///
    /// # Errors
    /// When it is gone.
    fn release(&mut self) -> Result<(), ExecError>;

    /// The last 4 KiB that it wrote to stderr; complete only once the process has ended.
    fn stderr_tail(&mut self) -> Vec<u8>;

    /// What it said while it died; complete only once no process of the run is left.
    fn said(&mut self) -> CrashMessages {
        CrashMessages {
            stderr: self.stderr_tail(),
            report: Vec::new(),
        }
    }
}

/// A run that was watched from outside only.
#[derive(Clone, Debug)]
pub struct Untraced {
    /// How it ended.
    pub ended: Ended,
    /// What it said while it died.
    pub said: CrashMessages,
    /// Where it has left copies of itself, where it can.
    pub copies: Option<Arc<CrashSnapshots>>,
}

/// Starts the target for triage, one run at a time.
pub trait Start: Send {
    /// Starts the target on `input` and stops it just before its `execve`. Without `aslr` its
    /// address space is not randomized, where the system allows that.
    ///
    /// # Errors
    /// When the target cannot be started.
    fn start(&mut self, input: &[u8], aslr: bool) -> Result<Box<dyn Tracee>, ExecError>;

    /// Runs the target on `input` without tracing; used where the system refuses ptrace. Where it
    /// can, it copies itself when it dies.
    ///
    /// # Errors
    /// When the target cannot be run.
    fn run_untraced(&mut self, input: &[u8], aslr: bool) -> Result<Untraced, ExecError>;

    /// Runs the target once more, untraced, to hear what a plain run does not say; `None` where
    /// that cannot be asked.
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

    /// What the program was compiled with that decides which crashes it can show: sanitizers, as
    /// `-fsanitize=` names them, and Rust's debug assertions; `None` where what runs is not known.
    fn instrumentation(&self) -> Option<Vec<String>> {
        None
    }

    /// The sanitizers of all programs that a run on `input` starts; `None` where that cannot be
    /// asked.
    ///
    /// # Errors
    /// When the target cannot be run.
    fn sanitizers_of_run(&mut self, _input: &[u8]) -> Result<Option<Vec<String>>, ExecError> {
        Ok(None)
    }

    /// The program that runs, where that is known.
    fn program(&self) -> Option<PathBuf> {
        None
    }

    /// Whether the program can end by a Rust panic.
    fn may_panic(&self) -> bool {
        true
    }

    /// The way of execution that this stands for.
    fn way(&self) -> Way;

    /// Limits on each run.
    fn limits(&self) -> Limits;

    /// The exit status that counts as a crash.
    fn crash_exit(&self) -> Option<i32>;
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

    fn stderr_tail(&mut self) -> Vec<u8> {
        Traced::stderr_tail(self)
    }

    fn said(&mut self) -> CrashMessages {
        Traced::crash_messages(self)
    }
}

impl Start for Traceable {
    fn start(&mut self, input: &[u8], aslr: bool) -> Result<Box<dyn Tracee>, ExecError> {
        Ok(Box::new(Traceable::start(self, input, aslr)?))
    }

    fn run_untraced(&mut self, input: &[u8], aslr: bool) -> Result<Untraced, ExecError> {
        let Some((mut run, copies)) = self.start_copied(input, aslr)? else {
            let (ended, said) = Traceable::run_again(self, input, aslr, RerunReason::Signals)?;
            let copies = None;
            return Ok(Untraced {
                ended,
                said,
                copies,
            });
        };
        run.release()?;
        let ended = run.wait()?;
        Ok(Untraced {
            ended,
            said: run.crash_messages(),
            copies: Some(copies),
        })
    }

    fn run_again(&mut self, input: &[u8], why: RerunReason) -> Result<Option<Untraced>, ExecError> {
        let (ended, said) = Traceable::run_again(self, input, false, why)?;
        Ok(Some(Untraced {
            ended,
            said,
            copies: None,
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

    fn way(&self) -> Way {
        Traceable::way(self)
    }

    fn limits(&self) -> Limits {
        Traceable::limits(self)
    }

    fn crash_exit(&self) -> Option<i32> {
        Traceable::crash_exit(self)
    }
}

impl Triager {
    /// A triager of `target` as the way `way` runs it.
    ///
    /// # Errors
    /// When the program is missing or cannot be executed.
    pub fn of_target(target: &Target, way: Way) -> Result<Triager, ExecError> {
        let start = Traceable::forking(target, way)?;
        Ok(Triager::with_settings(Box::new(start), Settings::default()))
    }
}
