//! What a server does for a run that is looked at.

use std::sync::Arc;

use super::copies::Copies;
use super::launch::{Inject, Launch, Role};
use super::place::Place;
use super::{ExecError, Target, Way, harness, inject};

/// What a server does for a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Serving {
    /// Executes the program.
    Executing,
    /// Forks it at its `main`.
    Forking,
    /// Executes it with what copies it when it dies.
    Copying,
}

/// How to launch the target so that it is copied when it dies, where that is possible: what is
/// preloaded into a script is preloaded into what runs it.
pub(crate) fn copying(
    place: &Place,
    target: &Target,
    way: Way,
) -> Result<Option<(Launch, Arc<Copies>)>, ExecError> {
    if place.facts.is_some() && inject::unfit(place).is_some() {
        return Ok(None);
    }
    let inject = match way {
        Way::Harness => Inject::Once(harness::entry(place)?),
        Way::Command | Way::Inject | Way::Forkserver | Way::Mock => Inject::Pass,
    };
    let mut launch = place.launch(target, Role::Trace, Some(inject));
    let copies = launch.be_copied()?;
    Ok(Some((launch, copies)))
}
