//! The minimizers that are measured: ddfuzz's searches, and what others have made.

mod afl_tmin;
mod cvise;
mod ddfuzz;
mod halfempty;
mod libfuzzer;
mod lithium;
mod picire;
mod shrinkray;
mod treereduce;

use std::process::{Command, ExitStatus};

use crate::families::Case;
use crate::families::real::installed;
use crate::job::Job;
use crate::options::{Options, Peers};
use crate::row::Row;

/// A minimizer.
pub trait Peer {
    /// Its name in the tables.
    fn name(&self) -> String;

    /// How to install it, where it is missing.
    fn missing(&self) -> Option<String>;

    /// Whether it has to be there for `--peers all`.
    fn is_required(&self) -> bool {
        true
    }

    /// Why it cannot be asked to minimize this case.
    ///
    /// # Errors
    /// The reason, for the table.
    fn reads(&self, _: &Case) -> Result<(), &'static str> {
        Ok(())
    }

    /// The commands that minimize, one after another.
    ///
    /// # Errors
    /// When something they need cannot be made.
    fn commands(&self, job: &Job<'_>) -> Result<Vec<Command>, String>;

    /// What they came to, where they say so.
    fn result(&self, job: &Job<'_>) -> Option<Vec<u8>>;

    /// Whether this exit status, not 0, is how it ends with a result.
    fn may_end_with(&self, _: ExitStatus) -> bool {
        false
    }

    /// The search, where this is ddfuzz.
    fn search(&self) -> Option<&'static str> {
        None
    }

    /// Adds what only this tool knows.
    ///
    /// # Errors
    /// When its own report cannot be read.
    fn refine(&self, _: &Job<'_>, _: &mut Row) -> Result<(), String> {
        Ok(())
    }
}

/// The tools that are asked for.
///
/// # Errors
/// Names the missing ones and how to install them.
pub fn choose(options: &Options) -> Result<Vec<Box<dyn Peer>>, String> {
    let mut tools = ddfuzz::searches(options.measures);
    if options.peers != Peers::None {
        tools.extend(others());
    }
    let names: Vec<String> = tools.iter().map(|tool| tool.name()).collect();
    if let Some(unknown) = options.tools.iter().find(|tool| !names.contains(tool)) {
        return Err(format!(
            "no tool {unknown}; there are: {}",
            names.join(", ")
        ));
    }
    tools.retain(|tool| options.chooses_tool(&tool.name()));
    let missing = |tool: &dyn Peer| tool.missing().map(|how| format!("{}: {how}", tool.name()));
    let lacks: Vec<(bool, String)> = tools
        .iter()
        .filter_map(|tool| Some((tool.is_required(), missing(tool.as_ref())?)))
        .collect();
    tools.retain(|tool| tool.missing().is_none());
    for (_, how) in &lacks {
        eprintln!("not measured: {how}");
    }
    let required: Vec<&str> = lacks
        .iter()
        .filter(|(required, _)| *required)
        .map(|(_, how)| how.as_str())
        .collect();
    match options.peers == Peers::All && !required.is_empty() {
        true => Err(format!(
            "tools are missing; install them, or measure without them by `--peers installed`:\n  {}",
            required.join("\n  ")
        )),
        false => Ok(tools),
    }
}

fn others() -> Vec<Box<dyn Peer>> {
    vec![
        Box::new(picire::Picire),
        Box::new(lithium::Lithium),
        Box::new(shrinkray::Shrinkray),
        Box::new(cvise::Cvise),
        Box::new(afl_tmin::AflTmin),
        Box::new(libfuzzer::LibFuzzer),
        Box::new(treereduce::Treereduce),
        Box::new(halfempty::Halfempty),
    ]
}

/// The hint `how`, unless all these programs are installed.
fn unless_installed(programs: &[&str], how: &str) -> Option<String> {
    let there = programs.iter().all(|name| installed(name).is_some());
    (!there).then(|| how.to_owned())
}
