//! Picks the way of execution, and says why.

use super::served::Served;
use super::{ExecError, Executor, Program, Target, Way};
use super::{command, elf, find_program, harness, inject};

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
    match way {
        Some(Way::Command) => started(command::start(target), "asked for"),
        Some(Way::Inject) => started(inject::start(target), "asked for"),
        Some(Way::Harness) => started(harness::start(target, fresh), "asked for"),
        Some(Way::Mock) => Err(ExecError::WayUnfit {
            way: Way::Mock.name(),
            path: "tests".into(),
            why: "it exists for tests only".to_owned(),
        }),
        None => by_choice(target, fresh),
    }
}

/// The fastest way that works. What does not come up is passed over, and said.
fn by_choice(target: &Target, fresh: bool) -> Result<Started, ExecError> {
    let mut passed_over = String::new();
    if let Some(why) = entry_wanted(target)? {
        match harness::start(target, fresh) {
            Err(ExecError::WayUnfit { why, .. }) => {
                passed_over = format!("its entry function cannot be called: {why}; ");
            }
            other => return started(other, &why),
        }
    }
    match inject::start(target) {
        Err(ExecError::WayUnfit { why, .. }) => {
            let why = format!("{passed_over}no fork server can be injected: {why}");
            started(command::start(target), &why)
        }
        other => started(other, &format!("{passed_over}a dynamically linked program")),
    }
}

fn started(executor: Result<Served, ExecError>, why: &str) -> Result<Started, ExecError> {
    executor.map(|executor| Started {
        executor: Box::new(executor),
        why: why.to_owned(),
    })
}

/// Why the target is to be run by its entry function, if so. Arguments would reach only its
/// `main`, those of libFuzzer excepted.
fn entry_wanted(target: &Target) -> Result<Option<String>, ExecError> {
    let path = match &target.program {
        Program::Bundled(_) if target.args.is_empty() => {
            return Ok(Some("a bundled target with an entry function".to_owned()));
        }
        Program::Bundled(_) => return Ok(None),
        Program::Path(path) => find_program(path)?,
    };
    let entry = elf::facts(&path).and_then(|facts| facts.entry);
    Ok(match entry {
        Some(entry) if entry.is_fuzzer() && !target.takes_file() => {
            Some(format!("a libFuzzer binary, {}", entry.coverage()))
        }
        Some(entry) if !entry.is_fuzzer() && target.args.is_empty() => Some(format!(
            "a target with an entry function, {}",
            entry.coverage()
        )),
        _ => None,
    })
}
