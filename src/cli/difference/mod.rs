//! `ddfuzz max` and `ddfuzz diff`: the largest part of an input that passes, and the difference
//! that makes one fail.

mod baseline;
pub mod diff;
mod job;
mod log;
pub mod max;
mod text;

use std::path::{Path, PathBuf};

pub use self::log::{PassingArgs, Subcommand, prove, rebuild};

use super::results::{Place, ResultArgs, read_input};
use super::target::TargetArgs;
use super::{Exit, Failure, Output, signals};
use crate::campaign::Minimizing;
use crate::delta::Dd;
use crate::minimize::log::{Goal, Units};

/// Where the help shows what is asked for otherwise.
const TEST: &str = "The test";

/// Options of both commands.
#[derive(clap::Args)]
struct SearchArgs {
    #[command(flatten)]
    target: TargetArgs,
    #[command(flatten)]
    results: ResultArgs,
    /// Swap PASS and FAIL: the empty (or the first) input crashes and the other one does not; what
    /// in it prevents that crash?
    #[arg(help_heading = TEST, long)]
    invert: bool,
    /// Take each part of what passes for passing, without a run; wrong where less can crash what
    /// more does not
    #[arg(help_heading = TEST, long)]
    monotone: bool,
    /// Each byte or edit implies all earlier ones: what is not a beginning is unresolved, without a
    /// run
    #[arg(help_heading = TEST, long)]
    order: bool,
}

/// An input and its bytes.
struct Input {
    path: PathBuf,
    bytes: Vec<u8>,
}

impl Input {
    fn read(path: PathBuf) -> Result<Input, Failure> {
        let bytes = read_input(&path)?;
        Ok(Input { path, bytes })
    }
}

/// What is searched for.
struct Sought {
    goal: Goal,
    units: Units,
    /// The passing input; `None` is the empty one.
    passing: Option<Input>,
    failing: Input,
}

impl Sought {
    /// The inputs, the one that names the results last.
    fn paths(&self) -> Vec<&Path> {
        let inputs = self.passing.iter().chain([&self.failing]);
        inputs.map(|input| input.path.as_path()).collect()
    }

    fn passing_bytes(&self) -> &[u8] {
        self.passing.as_ref().map_or(&[], |input| &input.bytes)
    }

    /// What the names of result files end with, the one that is asked for first; `.pass` stands
    /// behind its name.
    fn endings(&self) -> &'static [&'static str] {
        match self.goal {
            Goal::Maximize => &[".max"],
            Goal::Isolate => &[".diff", ".pass"],
        }
    }
}

fn search(sought: Sought, args: SearchArgs, output: &Output) -> Result<Exit, Failure> {
    let target = args.target.target()?;
    let place = Place::choose(&args.results, &sought.paths(), sought.endings())?;
    let stop = signals::stop_flag()?;
    let started = signals::unless_stopped(&stop, args.target.probe(&target, output))?;
    let way = started.executor.way();
    drop(started);
    let crash = baseline::crash(&sought, args.invert, &target, way);
    let crash = signals::unless_stopped(&stop, crash)?;
    let group = crash.keys.major.short();
    output.detail(&format!("{} in group {group}, by {way}", crash.class));
    let minimizing = Minimizing {
        budget_time: args.results.budget_time,
        budget_tests: args.results.budget_tests,
        log_inputs: args.results.log_inputs,
        no_cache: args.results.no_cache,
        ..Minimizing::of_target(target, way, Dd::NAME)
    };
    if args.results.force {
        place.clear()?;
    }
    let job = job::Job {
        sought: &sought,
        args: &args,
        minimizing: &minimizing,
        crash: &crash,
        stop: &stop,
    };
    let done = match &place {
        Place::File { results, log } => job.to_files(results, log),
        Place::Directory(out) => job.to_directory(out),
    };
    let (isolated, record) = signals::unless_stopped(&stop, done)?;
    for warning in &isolated.warnings {
        output.say(&format!("warning: {warning}"));
    }
    output.result(&text::text(&record, &isolated), &record);
    Ok(Exit::Done)
}
