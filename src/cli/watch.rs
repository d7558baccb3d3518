//! `ddfuzz watch`: triages and minimizes what another fuzzer drops, while it runs.

use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use super::reports::ReportArgs;
use super::shrinking::ShrinkArgs;
use super::target::TargetArgs;
use super::watched::Watched;
use super::{Exit, Failure, Output, amounts, known, signals};
use crate::campaign::watch::{Others, Producing, Watching};
use crate::campaign::{Deadline, Until};
use crate::exec::{Target, Way};
use crate::report::text::printable;

/// Longest input where nobody says, in bytes.
const MAX_LEN: u64 = 256 << 20;

/// Group and minimize the crash files of another fuzzer while it runs
///
/// Directories of libFuzzer, cargo-fuzz, AFL++, honggfuzz and ddfuzz are recognised, and only
/// their crash files are run; of any other directory all files are. The files are only read.
#[derive(clap::Args)]
#[command(after_help = "Example:\n  ddfuzz watch afl-out -- ./program @@\n  \
                  ddfuzz watch fuzz/artifacts/parse --until 'no new for 1h' -- ./parse\n  \
                  ddfuzz watch honggfuzz-workspace --once -o groups -- ./program @@")]
pub struct Args {
    /// Directories into which the fuzzer writes crash files, or single files; they may appear later
    #[arg(required = true, value_name = "DIR")]
    dirs: Vec<PathBuf>,
    #[command(flatten)]
    target: TargetArgs,
    /// Output directory
    #[arg(short, long, value_name = "DIR", default_value = "ddfuzz-out")]
    out: PathBuf,
    /// Watch for this long [default: until Ctrl-C]
    #[arg(long, value_parser = amounts::time)]
    time: Option<Duration>,
    /// Stop after this long in all, watching and minimization. Without --time, three quarters of it
    /// are for watching. --resume continues
    #[arg(long, value_name = "TIME", value_parser = amounts::time)]
    total_time: Option<Duration>,
    /// Stop at the `first` new group, at `3 groups`, or after `no new for 10m`. May be repeated;
    /// the first condition that is met stops the watch
    #[arg(long, value_name = "END", value_parser = Until::from_str)]
    until: Vec<Until>,
    /// Process the files that are there now, and stop
    #[arg(long)]
    once: bool,
    /// Number of workers that run inputs; one more minimizes [default: 1, because the fuzzer needs
    /// processors, too]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1024))]
    jobs: Option<u32>,
    /// Maximum length of an input; longer files are not run [default: 256M]
    #[arg(long, value_name = "SIZE", value_parser = amounts::size)]
    max_len: Option<u64>,
    /// Also look for memory leaks in inputs that do not crash, if the program has LeakSanitizer.
    /// Files named leak-* are always checked for leaks
    #[arg(long)]
    leaks: bool,
    // There is always a worker of its own for it, so that inline and worker are the same.
    #[command(flatten)]
    shrink: ShrinkArgs,
    /// Continue an earlier watch in the output directory: files that were run are not run again
    #[arg(long)]
    resume: bool,
    /// Print lines instead of showing the full screen
    #[arg(hide_short_help = true, long)]
    plain: bool,
    /// File of known groups, one a line: 12 or more hex digits of a major key, or stable:HEX. Their
    /// crashes are stored but not minimized, and do not count for the exit code
    #[arg(hide_short_help = true, long, value_name = "FILE")]
    known: Option<PathBuf>,
    /// Treat all groups of this other output directory as known, too. If no other group is found,
    /// the exit code is 4
    #[arg(hide_short_help = true, long, value_name = "OUT")]
    against: Option<PathBuf>,
    #[command(flatten)]
    reports: ReportArgs,
}

/// Runs the command.
pub fn run(args: Args, output: &Output) -> Result<Exit, Failure> {
    check_places(&args)?;
    let output = &args.reports.check(output)?;
    args.target.check_given("watch", &args.dirs)?;
    let target = args.target.target()?;
    let stop = signals::stop_flag()?;
    let deadline = signals::deadline(args.total_time, &stop)?;
    let started = signals::unless_stopped(&stop, args.target.probe(&target, output))?;
    let way = started.executor.way();
    output.detail(&format!("executed by {way}: {}", started.why));
    let settings = Watching {
        deadline,
        ..settings(&args, target, way)?
    };
    let dirs: Vec<_> = args.dirs.iter().map(|dir| dir.to_string_lossy()).collect();
    let watched = Watched {
        settings: &settings,
        out: &args.out,
        resume: args.resume,
        seed: None,
        engine: format!("watching {}", printable(&dirs.join(", "))),
        unit: "input",
        plain: args.plain,
        reports: &args.reports,
        stop: &stop,
    };
    let producer = Others(match args.once {
        true => Producing::Ended,
        false => Producing::Running,
    });
    watched.run(started, || Ok(producer), output)
}

/// What is watched is no place of ours, and with `--once` it is there.
fn check_places(args: &Args) -> Result<(), Failure> {
    let out = args.out.canonicalize().ok();
    for dir in &args.dirs {
        match dir.canonicalize() {
            Ok(real) if out.as_ref().is_some_and(|out| real.starts_with(out)) => {
                let message = format!("{} is in the output directory", dir.display());
                return Err(Failure::usage(message)
                    .path(dir)
                    .hint("choose another output directory with -o"));
            }
            Err(error) if args.once => {
                return Err(Failure::file(dir, "reading", &error)
                    .hint("without --once, ddfuzz waits until it exists"));
            }
            _ => {}
        }
    }
    Ok(())
}

fn settings(args: &Args, target: Target, way: Way) -> Result<Watching, Failure> {
    Ok(Watching {
        sources: args.dirs.clone(),
        max_len: args.max_len.unwrap_or(MAX_LEN),
        leaks: args.leaks,
        time: Deadline::fuzzing(args.total_time, args.time).filter(|_| !args.once),
        deadline: Deadline::default(),
        until: args.until.clone(),
        when: args.shrink.when(),
        jobs: args.jobs.map_or(1, |jobs| jobs as usize),
        minimizing: (args.shrink).minimizing(target, way, args.target.timeout.is_none()),
        known: known::read_both(args.known.as_deref(), args.against.as_deref())?,
        waits_for_room: true,
    })
}
