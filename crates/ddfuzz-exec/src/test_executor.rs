//! The executor of interestingness tests: programs of the user that decide, by their exit status,
//! whether an input is kept.
//!
//! A test is started anew for each run, unless it is a program that starts no other processes: such
//! a program is run by `snapshot` or, where that does not work, by `inject`. A run of a test ends
//! as its first process does, while a run of a target counts as crashed if any of its processes has
//! crashed.

use std::ffi::{OsStr, OsString};

use crate::descendants::Untraced;
use crate::launch::{Inject, Role};
use crate::prepared_target::PreparedTarget;
use crate::server_executor::ServerExecutor;
use crate::snapshot_executor::SnapshotExecutor;
use crate::{ExecError, Executor, Freshness, Run, Target, TimeLimit, Way, ways};

/// Starts an interestingness test: a program that gets the input as its first argument, on stdin,
/// and as the file `name` in its empty working directory (docs/src/interestingness.md). The
/// arguments and directory of `target` are not used. The test runs as the current user. With
/// [`Freshness::Fresh`] each run executes the program anew. Fails when the program is missing or
/// has no execute permission. If the kernel cannot execute it, the first run fails with
/// [`ExecError::NotExecutable`].
pub fn start_test(
    target: &Target,
    name: &OsStr,
    freshness: Freshness,
) -> Result<Box<dyn Executor>, ExecError> {
    let prepared = PreparedTarget::for_test(target, name)?;
    if freshness == Freshness::Shared
        && !prepared.may_fork()
        && ways::not_injectable(&prepared).is_none()
        && let Some(faster) = TestExecutor::start(target, name)?
    {
        return Ok(Box::new(faster));
    }
    Ok(Box::new(start_command(target, prepared)?))
}

fn start_command(target: &Target, prepared: PreparedTarget) -> Result<ServerExecutor, ExecError> {
    ServerExecutor::start(target, prepared, Way::Command, Role::Serve, None)
}

/// Starts an interestingness test into which ddfuzz's library is preloaded: by the method of
/// execution `way`, with runs that begin as `inject` says.
fn start_injecting(
    target: &Target,
    name: &OsStr,
    way: Way,
    inject: Inject,
) -> Result<ServerExecutor, ExecError> {
    let prepared = PreparedTarget::for_test(target, name)?;
    ServerExecutor::start(target, prepared, way, Role::Program, Some(inject))
}

/// An executor of an interestingness test that makes many runs in one process or forks them. When a
/// run has started another process, the executor makes that run again; the repeated run and all
/// later runs execute the test anew.
struct TestExecutor {
    bare: Box<dyn Untraced>,
    /// Executor that executes the interestingness test anew for each run; `None` until a run has
    /// started processes.
    command: Option<ServerExecutor>,
    target: Target,
    name: OsString,
}

impl TestExecutor {
    /// Starts the interestingness test by the method of execution `snapshot`, or else by `inject`;
    /// `None` if neither works for it.
    fn start(target: &Target, name: &OsStr) -> Result<Option<TestExecutor>, ExecError> {
        let (owned, own_name) = (target.clone(), name.to_owned());
        let start = move |inject| start_injecting(&owned, &own_name, Way::Snapshot, inject);
        let bare: Box<dyn Untraced> =
            match SnapshotExecutor::start(ways::trust_of(target), Box::new(start)) {
                Ok((executor, _)) => Box::new(executor),
                Err(ExecError::WayUnfit { .. }) => {
                    match start_injecting(target, name, Way::Inject, Inject::Defer) {
                        Ok(executor) => Box::new(executor),
                        Err(ExecError::WayUnfit { .. }) => return Ok(None),
                        Err(error) => return Err(error),
                    }
                }
                Err(error) => return Err(error),
            };
        Ok(Some(TestExecutor {
            bare,
            command: None,
            target: target.clone(),
            name: name.to_owned(),
        }))
    }
}

impl Executor for TestExecutor {
    fn run(&mut self, input: &[u8]) -> Result<Run, ExecError> {
        if let Some(command) = &mut self.command {
            return command.run(input);
        }
        let run = self.bare.run(input)?;
        if !self.bare.forked() {
            return Ok(run);
        }
        let prepared = PreparedTarget::for_test(&self.target, &self.name)?;
        let command = start_command(&self.target, prepared)?;
        self.command.insert(command).run(input)
    }

    fn way(&self) -> Way {
        self.bare.way()
    }

    fn freshness(&self) -> Freshness {
        // Remains the same even when each run has come to execute the test anew: when that begins
        // depends on which worker runs which input, on which the records of runs must not depend.
        self.bare.freshness()
    }

    fn limit_time(&mut self, time: TimeLimit) {
        self.target.limits = time.within(self.target.limits);
        self.bare.limit_time(time);
        if let Some(command) = &mut self.command {
            command.limit_time(time);
        }
    }
}
