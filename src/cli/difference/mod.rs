//! `ddfuzz max` and `ddfuzz diff`: the largest part of an input that passes, and the difference
//! that makes one fail.

mod baseline;
pub mod diff;
mod job;
mod judge;
mod log;
pub mod max;
mod text;

use std::path::{Path, PathBuf};

use self::judge::Judge;
pub use self::log::{PassingArgs, Subcommand, is_inverted, prove, rebuild};

use super::results::{InputFile, Place, ResultArgs, input_file, read_input, with_ending};
use super::script::{Interestingness, no_group};
use super::target::TargetArgs;
use super::{Exit, Failure, Output, signals};
use crate::campaign::Minimizing;
use crate::delta::Dd;
use crate::minimize::log::{Goal, OsText, Units};

/// The heading of the options about tests in the help.
const TEST: &str = "Tests";

/// Options of both commands.
#[derive(clap::Args)]
struct SearchArgs {
    #[command(flatten)]
    target: TargetArgs,
    #[command(flatten)]
    results: ResultArgs,
    /// Decide by an interestingness test instead of a crash. SCRIPT gets each candidate as its
    /// first argument (a path), on stdin, and under FAILING's name in its working directory; it
    /// exits with 0 if the candidate fails and with 125 if it cannot tell. --timeout limits the
    /// CPU time of one test [default: 10s]
    #[arg(help_heading = TEST, long, value_name = "SCRIPT", conflicts_with_all = ["program", "target", "way", "cwd", "crash_exit", "terminal", "file_name", "two_files"])]
    test: Option<PathBuf>,
    /// Swap PASS and FAIL: the empty (or first) input crashes and the other one does not. The
    /// result is what in the other input prevents the crash
    #[arg(help_heading = TEST, long)]
    invert: bool,
    /// Assume that each part of a passing input passes, and do not run it. Wrong if a smaller input
    /// can crash where a larger one does not
    #[arg(help_heading = TEST, long)]
    monotone: bool,
    /// Keep only prefixes: each byte or edit needs all earlier ones, any other candidate counts as
    /// unresolved and is not run
    #[arg(help_heading = TEST, long)]
    order: bool,
}

/// An input and its bytes.
struct Input {
    path: PathBuf,
    bytes: Vec<u8>,
    file: InputFile,
}

impl Input {
    fn read(path: PathBuf) -> Result<Input, Failure> {
        let file = input_file(path)?;
        let path = file.path.clone();
        let bytes = read_input(&path)?;
        Ok(Input { path, bytes, file })
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
    let output = &args.results.output(output)?;
    let done = search_for(&sought, &args, output);
    let inputs = sought.passing.iter().chain([&sought.failing]);
    let files: Vec<InputFile> = inputs.map(|input| input.file.clone()).collect();
    let result = with_ending(&sought.failing.path, sought.endings()[0]);
    args.results.settle_stdin(&done, &files, &result, output);
    done
}

fn search_for(sought: &Sought, args: &SearchArgs, output: &Output) -> Result<Exit, Failure> {
    let (inputs, named) = (sought.paths(), &sought.failing.path);
    let place = Place::choose(&args.results, &inputs, named, sought.endings())?;
    let stop = signals::stop_flag()?;
    let judge = judge(sought, args, &place, output);
    let judge = signals::unless_stopped(&stop, judge)?;
    if args.results.force {
        place.clear()?;
    }
    let job = job::Job {
        sought,
        args,
        judge: &judge,
        stop: &stop,
    };
    let done = match &place {
        Place::File { results, log } => job.to_files(results, log),
        Place::Directory(out) => job.to_directory(out),
    };
    let (isolated, mut record) = signals::unless_stopped(&stop, done)?;
    for warning in &isolated.warnings {
        output.say(&format!("warning: {warning}"));
    }
    let printed = args.results.taken(&mut record.output);
    for side in [&mut record.passing, &mut record.failing] {
        if printed.is_some() && *side == printed {
            *side = Some(OsText("stdout".into()));
        }
    }
    output.result(&text::text(&record, &isolated), &record);
    args.results.print(printed)?;
    Ok(Exit::Done)
}

/// Finds out what fails, before anything is written.
fn judge(
    sought: &Sought,
    args: &SearchArgs,
    place: &Place,
    output: &Output,
) -> Result<Judge, Failure> {
    if let Some(script) = &args.test {
        let mut test = Interestingness::find(script, &args.target, &sought.failing.path)?;
        if matches!(place, Place::Directory(_)) {
            return Err(no_group());
        }
        baseline::test(sought, args.invert, &mut test)?;
        return Ok(Judge::Test(Box::new(test.with_fixed_time())));
    }
    let target = args.target.target()?;
    let way = args.target.probe(&target, output)?.executor.way();
    let crash = baseline::crash(sought, args.invert, &target, way)?;
    let group = crash.keys.major.short();
    output.detail(&format!(
        "{} in group {group}, executed by {way}",
        crash.class
    ));
    let minimizing = Minimizing {
        no_cache: args.results.no_cache,
        learn_limit: false,
        ..Minimizing::of_target(target, way, Dd::NAME)
    };
    Ok(Judge::Crash {
        minimizing: Box::new(minimizing),
        crash: Box::new(crash),
    })
}
