//! Picks the way of execution, and says why.

use super::{ExecError, Executor, Program, Target, Way, command, forkserver, harness, inject};

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
    let by = |executor: Result<super::served::Served, ExecError>, why: &str| {
        executor.map(|executor| Started {
            executor: Box::new(executor),
            why: why.to_owned(),
        })
    };
    match way {
        Some(Way::Command) => by(command::start(target), "asked for"),
        Some(Way::Inject) => by(inject::start(target), "asked for"),
        Some(Way::Harness) => by(harness::start(target, fresh), "asked for"),
        Some(Way::Forkserver) => by_own_server(target, freshness, "asked for"),
        Some(Way::Mock) => Err(ExecError::WayUnfit {
            way: Way::Mock.name(),
            path: "tests".into(),
            why: "it exists for tests only".to_owned(),
        }),
        None if is_harness(target) => by(
            harness::start(target, fresh),
            "a bundled target with an entry function",
        ),
        None if forkserver::fits(target) => {
            match by_own_server(target, freshness, "a program compiled by AFL++") {
                Err(ExecError::WayUnfit { why, .. }) => {
                    injected_or_not(target).map(|other| Started {
                        why: format!("{}; its own fork server does not work: {why}", other.why),
                        ..other
                    })
                }
                other => other,
            }
        }
        None => injected_or_not(target),
    }
}

/// The injected fork server, or where that is impossible a new process for each run.
fn injected_or_not(target: &Target) -> Result<Started, ExecError> {
    let by = |executor: Result<super::served::Served, ExecError>, why: String| {
        executor.map(|executor| Started {
            executor: Box::new(executor),
            why,
        })
    };
    match inject::start(target) {
        Err(ExecError::WayUnfit { why, .. }) => by(
            command::start(target),
            format!("no fork server can be injected: {why}"),
        ),
        other => by(other, "a dynamically linked program".to_owned()),
    }
}

fn by_own_server(target: &Target, freshness: Freshness, why: &str) -> Result<Started, ExecError> {
    let executor = Box::new(forkserver::start(target, freshness)?);
    let mode = match executor.freshness() {
        Freshness::Shared => ", with many runs in one process",
        Freshness::Fresh => "",
    };
    Ok(Started {
        why: format!("{why}{mode}"),
        executor,
    })
}

/// A bundled target's arguments would reach only its `main`.
fn is_harness(target: &Target) -> bool {
    matches!(target.program, Program::Bundled(_)) && target.args.is_empty()
}
