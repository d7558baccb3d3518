//! The way `harness`: the target's entry function called in-process, in a child of a small
//! zygote. The function is `target_main`, or libFuzzer's `LLVMFuzzerTestOneInput` in a binary as
//! cargo-fuzz or clang have built it.

use super::entry::Entry;
use super::launch::{Inject, Role};
use super::place::Place;
use super::served::Served;
use super::{ExecError, Target, Way, inject};

/// Starts `target` as a harness. `fresh`: each run gets a process of its own, so that no state
/// of earlier runs can speak in the outcome; else one process runs inputs until it dies.
pub(crate) fn start(target: &Target, fresh: bool) -> Result<Served, ExecError> {
    let place = Place::prepare(target, Way::Harness)?;
    let entry = entry(&place)?;
    let inject = if fresh {
        Inject::Entry(entry)
    } else {
        Inject::Loop(entry)
    };
    Served::start(target, place, Way::Harness, Role::Program, Some(inject))
}

/// Starts `target` as a loop that tells the coverage of each run, each in a process of its own.
pub(crate) fn start_covered(target: &Target) -> Result<Served, ExecError> {
    start(target, false).map(Served::with_fresh_runs)
}

/// The entry function.
pub(crate) fn entry(place: &Place) -> Result<Entry, ExecError> {
    let unfit = |why: &str| ExecError::WayUnfit {
        way: Way::Harness.name(),
        path: place.program.clone(),
        why: why.to_owned(),
    };
    let entry = place.facts.as_ref().and_then(|facts| facts.entry);
    let entry = entry.ok_or_else(|| {
        unfit("it has no function `target_main` or `LLVMFuzzerTestOneInput` (is it stripped?)")
    })?;
    match inject::unfit(place) {
        Some(why) => Err(unfit(why)),
        None => Ok(entry),
    }
}
