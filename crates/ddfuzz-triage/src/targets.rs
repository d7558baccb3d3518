//! Triage of what `exec` starts.

use std::path::PathBuf;

use nix::unistd::Pid;

use super::tracee::{Start, Tracee, Untraced};
use super::{Settings, Triager};
use ddfuzz_exec::{Again, ExecError, Limits, Said, Target, Traceable, Traced, Way};

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

    fn said(&mut self) -> Said {
        Traced::said(self)
    }
}

impl Start for Traceable {
    fn start(&mut self, input: &[u8], aslr: bool) -> Result<Box<dyn Tracee>, ExecError> {
        Ok(Box::new(Traceable::start(self, input, aslr)?))
    }

    fn run_untraced(&mut self, input: &[u8], aslr: bool) -> Result<Untraced, ExecError> {
        let Some((mut run, copies)) = self.start_copied(input, aslr)? else {
            let (ended, said) = Traceable::run_again(self, input, aslr, Again::Signals)?;
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
            said: run.said(),
            copies: Some(copies),
        })
    }

    fn run_again(&mut self, input: &[u8], why: Again) -> Result<Option<Untraced>, ExecError> {
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
