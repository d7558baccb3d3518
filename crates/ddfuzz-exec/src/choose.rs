//! Picks the way of execution, and says why.

use super::served::Served;
use super::tree::Tree;
use super::{Channel, ExecError, Executor, Program, Target, Telling, Way};
use super::{command, elf, find_program, forkserver, harness, inject};

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
        Some(Way::Command) => by_main(command::start(target), target, "chosen by --exec"),
        Some(Way::Inject) => by_main(inject::start(target), target, "chosen by --exec"),
        Some(Way::Harness) => by_entry(harness::start(target, fresh), "chosen by --exec"),
        Some(Way::Forkserver) => by_own_server(target, freshness, "chosen by --exec"),
        Some(Way::Mock) => Err(ExecError::WayUnfit {
            way: Way::Mock.name(),
            path: "tests".into(),
            why: "it exists for tests only".to_owned(),
        }),
        None => by_choice(target, freshness),
    }
}

/// Starts `target` in this way so that each run has a process of its own and tells its coverage,
/// where the way and the target can tell any.
///
/// # Errors
/// As [`start`].
pub fn start_covered(target: &Target, way: Way) -> Result<Box<dyn Executor>, ExecError> {
    let mut executor: Box<dyn Executor> = match way {
        Way::Harness => Box::new(harness::start_covered(target)?),
        way => start(target, Some(way), Freshness::Fresh)?.executor,
    };
    executor.tell_coverage(Telling::Every);
    Ok(executor)
}

/// The fastest way that works. What does not come up is passed over, and said.
fn by_choice(target: &Target, freshness: Freshness) -> Result<Started, ExecError> {
    let mut but = String::new();
    match wanted(target)? {
        Wanted::Entry(why) => match harness::start(target, freshness == Freshness::Fresh) {
            Err(ExecError::WayUnfit { why, .. }) => {
                but = format!("its entry function cannot be called: {why}; ");
            }
            other => return by_entry(other, &why),
        },
        Wanted::Lost => {
            but = "a libFuzzer binary without symbols (stripped?), so its entry function is not found \
                   and its coverage unknown; "
                .to_owned();
        }
        Wanted::OwnServer => {
            match by_own_server(target, freshness, "a program compiled by AFL++") {
                Err(ExecError::WayUnfit { why, .. }) => {
                    but = format!("its own fork server does not work: {why}; ");
                }
                other => return other,
            }
        }
        Wanted::Main => {}
    }
    match inject::start(target) {
        Err(ExecError::WayUnfit { why, .. }) => {
            let why = format!("{but}no fork server can be injected: {why}");
            by_main(command::start(target), target, &why)
        }
        other => by_main(other, target, &format!("{but}a dynamically linked program")),
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

/// A `main` may start other processes.
fn by_main(
    executor: Result<Served, ExecError>,
    target: &Target,
    why: &str,
) -> Result<Started, ExecError> {
    executor.map(|executor| Started {
        executor: Box::new(Tree::new(executor, target)),
        why: why.to_owned(),
    })
}

/// An entry function is called, and the program around it not run.
fn by_entry(executor: Result<Served, ExecError>, why: &str) -> Result<Started, ExecError> {
    executor.map(|executor| Started {
        executor: Box::new(executor),
        why: why.to_owned(),
    })
}

/// What of a target is to be run.
enum Wanted {
    /// Its entry function, for this reason.
    Entry(String),
    /// That, but it is not to be found.
    Lost,
    /// Its `main`, by a fork server that its compiler put into it.
    OwnServer,
    /// Its `main`.
    Main,
}

/// Arguments would reach only a target's `main`, those of libFuzzer excepted.
fn wanted(target: &Target) -> Result<Wanted, ExecError> {
    if matches!(target.channel, Channel::Terminal(_)) {
        return Ok(Wanted::Main); // nothing else has a terminal
    }
    let path = match &target.program {
        Program::Bundled(_) if target.args.is_empty() => {
            let why = "a bundled target with an entry function".to_owned();
            return Ok(Wanted::Entry(why));
        }
        Program::Bundled(_) => return Ok(Wanted::Main),
        Program::Path(path) => find_program(path)?,
    };
    let Some(facts) = elf::facts(&path) else {
        return Ok(Wanted::Main);
    };
    Ok(match facts.entry {
        Some(entry) if facts.is_fuzzer && !target.takes_file() => {
            Wanted::Entry(format!("a libFuzzer binary, {}", entry.coverage()))
        }
        // One that AFL++ has compiled tells its coverage to its own server only.
        Some(entry) if facts.afl && !facts.is_fuzzer && entry.counter_count() == 0 => {
            Wanted::OwnServer
        }
        Some(entry) if !facts.is_fuzzer && target.args.is_empty() => Wanted::Entry(format!(
            "a target with an entry function, {}",
            entry.coverage()
        )),
        None if facts.is_fuzzer && !target.takes_file() => Wanted::Lost,
        _ if facts.afl && !facts.is_fuzzer => Wanted::OwnServer,
        _ => Wanted::Main,
    })
}
