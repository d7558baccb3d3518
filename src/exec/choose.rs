//! Picks the way of execution, and says why.

use super::served::Served;
use super::tree::Tree;
use super::{ExecError, Executor, Program, Target, Way, command, harness, inject};

/// Whether runs may share a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Freshness {
    /// As fast as the way allows: a harness runs many inputs in one process.
    Shared,
    /// Each run in a process of its own: what a proof may rest on.
    Fresh,
}

/// A started target, and why it runs in the way it does.
pub struct Started {
    /// The executor.
    pub executor: Box<dyn Executor>,
    /// Why this way, in a few words for people.
    pub why: String,
}

/// Starts `target` in the way asked for, or in the fastest that works.
///
/// # Errors
/// When the program is missing or cannot be executed, and when a way asked for does not work.
pub fn start(
    target: &Target,
    way: Option<Way>,
    freshness: Freshness,
) -> Result<Started, ExecError> {
    let fresh = freshness == Freshness::Fresh;
    let started = |executor: Box<dyn Executor>, why: &str| Started {
        executor,
        why: why.to_owned(),
    };
    let by = |executor: Result<Served, ExecError>, why: &str| {
        executor.map(|executor| started(Box::new(Tree::new(executor, target)), why))
    };
    // An entry function is called, and the program around it not run.
    let by_entry = |executor: Result<Served, ExecError>, why: &str| {
        executor.map(|executor| started(Box::new(executor), why))
    };
    match way {
        Some(Way::Command) => by(command::start(target), "asked for"),
        Some(Way::Inject) => by(inject::start(target), "asked for"),
        Some(Way::Harness) => by_entry(harness::start(target, fresh), "asked for"),
        Some(Way::Mock) => Err(ExecError::WayUnfit {
            way: Way::Mock.name(),
            path: "tests".into(),
            why: "it exists for tests only".to_owned(),
        }),
        None if is_harness(target) => by_entry(
            harness::start(target, fresh),
            "a bundled target with an entry function",
        ),
        None => match inject::start(target) {
            Err(ExecError::WayUnfit { why, .. }) => by(
                command::start(target),
                &format!("no fork server can be injected: {why}"),
            ),
            other => by(other, "a dynamically linked program"),
        },
    }
}

/// A bundled target's arguments would reach only its `main`.
fn is_harness(target: &Target) -> bool {
    matches!(target.program, Program::Bundled(_)) && target.args.is_empty()
}
