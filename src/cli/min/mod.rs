//! `ddfuzz min`: minimizes one failing input.

mod export;
mod into_file;
mod job;
mod place;
mod screen;
pub(in crate::cli) mod script;
mod slips;

use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use self::job::Job;
use self::place::Place;
use super::target::TargetArgs;
use super::{Exit, Failure, Output, amounts, signals};
use crate::campaign::{Finished, Minimizing};
use crate::exec::{Target, Way};
use crate::minimize::MinRecord;
use crate::minimize::log::OsText;
use crate::triage::{Crash, Found, Triager, Verdict};

/// Minimize one failing input
#[derive(clap::Args)]
#[command(after_help = "Example:\n  ddfuzz min crash-1 -- ./program @@\n  \
                        ddfuzz min crash-1 -o smaller --search ddmin --target ul\n  \
                        ddfuzz min crash-1 --test ./is-interesting.sh")]
pub struct Args {
    /// The failing input; it is only read
    input: PathBuf,
    #[command(flatten)]
    target: TargetArgs,
    /// An interestingness test, instead of a program: a program that gets each candidate as its
    /// first argument, on stdin, and under the input's name in its fresh directory, and exits with
    /// 0 where it is interesting, with 125 where it cannot tell. CPU time of one run [default: 10s]
    #[arg(long, value_name = "SCRIPT", conflicts_with_all = ["program", "target", "way", "cwd", "crash_exit"])]
    test: Option<PathBuf>,
    /// Write an interestingness test for this crash here, an executable script that other reducers
    /// can use; it asks ddfuzz
    #[arg(long, value_name = "FILE", conflicts_with = "test")]
    export_test: Option<PathBuf>,
    /// The result file [default: INPUT.min]; an output directory, if it exists or ends with /
    #[arg(short, long, value_name = "PATH")]
    out: Option<PathBuf>,
    /// How to minimize
    #[arg(long, value_name = "NAME", default_value = "ddmin")]
    search: String,
    /// The log [default: the result file's name with .log.jsonl]
    #[arg(long, value_name = "FILE")]
    log: Option<PathBuf>,
    /// Longest time
    #[arg(long, value_name = "TIME", value_parser = amounts::time)]
    budget_time: Option<Duration>,
    /// Most tests
    #[arg(long, value_name = "N")]
    budget_tests: Option<u64>,
    /// Write the candidates into the log
    #[arg(long)]
    log_inputs: bool,
    /// Test a text again that another configuration gave before, as the papers count
    #[arg(long)]
    no_cache: bool,
    /// Workers, on whose number no result depends; tests run one after another so far
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1024))]
    jobs: Option<u32>,
    /// Go on with a minimization that was cut off
    #[arg(long, conflicts_with = "force")]
    resume: bool,
    /// Overwrite the result file and the log
    #[arg(long)]
    force: bool,
}

/// Runs the command.
pub fn run(args: Args, output: &Output) -> Result<Exit, Failure> {
    let input = read_input(&args.input)?;
    let search = crate::minimize::search_by_name(&args.search, &input);
    search.map_err(Failure::usage)?;
    let stop = signals::stop_flag()?;
    let began = Instant::now();
    let done = match &args.test {
        Some(script) => script::minimize_by(script, &args, &input, &stop),
        None => minimize_crash(&args, input, &stop, output),
    };
    let (finished, mut record) = signals::unless_stopped(&stop, done)?;
    record.wall_ms = began.elapsed().as_millis() as u64;
    for warning in &finished.minimized.warnings {
        output.say(&format!("warning: {warning}"));
    }
    output.result(&screen::text(&record, &finished), &record);
    Ok(Exit::Done)
}

/// Minimizes a crash of the target.
fn minimize_crash(
    args: &Args,
    input: Vec<u8>,
    stop: &AtomicBool,
    output: &Output,
) -> Result<(Finished, MinRecord), Failure> {
    let target = args.target.target()?;
    let place = Place::choose(args)?;
    export::check(args, &place)?;
    let way = args.target.probe(&target, output)?.executor.way();
    let crash = baseline(&args.input, &input, &target, way)?;
    output.detail(&format!(
        "{} in group {}, by {way}",
        crash.class,
        crash.keys.major.short()
    ));
    if args.force {
        place.clear()?;
    }
    export::write(args, &crash, &target, way)?;
    let minimizing = args.minimizing(target, way);
    let job = Job {
        minimizing,
        stop,
        args,
        crash,
        input,
    };
    match &place {
        Place::File { result, log } => job.into_file(result, log),
        Place::Directory(out) => job.into_directory(out),
    }
}

impl Args {
    /// The search and its budgets, for a target.
    fn minimizing(&self, target: Target, way: Way) -> Minimizing {
        Minimizing {
            target,
            way,
            search: self.search.clone(),
            budget_time: self.budget_time,
            budget_tests: self.budget_tests,
            log_inputs: self.log_inputs,
            no_cache: self.no_cache,
            seed: None,
        }
    }
}

fn read_input(path: &Path) -> Result<Vec<u8>, Failure> {
    if path.is_dir() {
        let message = format!("{} is a directory, not an input", path.display());
        return Err(Failure::usage(message).path(path).hint("name a file"));
    }
    std::fs::read(path).map_err(|error| Failure::file(path, "reading", &error))
}

/// The crash of the input before anything is removed.
fn baseline(path: &Path, input: &[u8], target: &Target, way: Way) -> Result<Crash, Failure> {
    match Triager::of_target(target, way)?.examine(input)? {
        Verdict::Crash(crash) => {
            let path = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
            Ok(Crash {
                found: Some(Found::File { path }),
                ..*crash
            })
        }
        Verdict::Flaky { tries, ended } => {
            let message = format!(
                "{} does not fail: {tries} runs, the last of them ended with {ended}",
                path.display()
            );
            Err(Failure::new(Exit::Baseline, "not-failing", message)
                .path(path)
                .hint("give an input that crashes the target every time; --crash-exit N takes an exit status for a crash"))
        }
    }
}

/// The path as JSON has it.
fn text_of(path: &Path) -> Option<OsText> {
    std::path::absolute(path)
        .ok()
        .map(|path| OsText(path.into()))
}
