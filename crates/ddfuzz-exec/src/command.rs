//! The way `command`: a new process and `execve` for each run. It works for every program.

use super::launch::Role;
use super::place::Place;
use super::served::Served;
use super::{ExecError, Target, Way};

/// Starts `target` to be run by `execve`.
pub(crate) fn start(target: &Target) -> Result<Served, ExecError> {
    Served::start(
        target,
        Place::prepare(target, Way::Command)?,
        Way::Command,
        Role::Serve,
        None,
    )
}
