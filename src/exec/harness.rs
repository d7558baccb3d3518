//! The way `harness`: the target's entry function called in-process, in a child of a small
//! zygote.

use super::launch::{Inject, Role};
use super::place::Place;
use super::served::Served;
use super::{ExecError, Target, Way};

/// Starts `target` as a harness. `fresh`: each run gets a process of its own, so that no state
/// of earlier runs can speak in the outcome; else one process runs inputs until it dies.
pub(crate) fn start(target: &Target, fresh: bool) -> Result<Served, ExecError> {
    let place = Place::prepare(target)?;
    let at = entry(&place)?;
    let inject = if fresh {
        Inject::Entry(at)
    } else {
        Inject::Loop(at)
    };
    Served::start(target, place, Way::Harness, Role::Program, Some(inject))
}

/// Address of the entry function before loading.
pub(crate) fn entry(place: &Place) -> Result<u64, ExecError> {
    place
        .facts
        .as_ref()
        .and_then(|facts| facts.target_main)
        .ok_or_else(|| ExecError::WayUnfit {
            way: Way::Harness.name(),
            path: place.program.clone(),
            why: "it has no function `target_main`".to_owned(),
        })
}
