//! `ddfuzz watch`: triages and minimizes what another fuzzer drops, while it runs.

use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use super::reports::ReportArgs;
use super::shrinking::ShrinkArgs;
use super::target::TargetArgs;
use super::watched::Watched;
use super::{Exit, Failure, Output, amounts, known, signals};
use crate::campaign::{Deadline, Until};
use crate::campaign::watch::{Others, Producing, Watching};
use crate::exec::{Target, Way};
use crate::report::text::printable;

/// Longest input where nobody says, in bytes.
const MAX_LEN: u64 = 256 << 20;

/// Triage and minimize what another fuzzer drops, while it runs
///
/// Directories of libFuzzer, cargo-fuzz, AFL++, honggfuzz and ddfuzz are recognised, and only
/// their crashes are taken; of any other directory every file is. What is watched is only read.
#[derive(clap::Args)]
#[command(after_help = "Example:\n  ddfuzz watch afl-out -- ./program @@\n  \
                  ddfuzz watch fuzz/artifacts/parse --until 'no new for 1h' -- ./parse\n  \
                  ddfuzz watch honggfuzz-workspace --once -o groups -- ./program @@")]
pub struct Args {
    /// Directories that crash files are dropped into, or files; those that are not there yet are
    /// waited for
    #[arg(required = true, value_name = "DIR")]
    dirs: Vec<PathBuf>,
    #[command(flatten)]
    target: TargetArgs,
    /// The output directory
    #[arg(short, long, value_name = "DIR", default_value = "ddfuzz-out")]
    out: PathBuf,
    /// Watch for this long [default: until Ctrl-C]
    #[arg(long, value_parser = amounts::time)]
    time: Option<Duration>,
    /// End after this long whatever is under way. Without --time it is watched for three quarters
    /// of it; what is left to be done, --resume goes on with
    #[arg(long, value_name = "TIME", value_parser = amounts::time)]
    total_time: Option<Duration>,
    /// End with the `first` new group, with `3 groups`, or with `no new for 10m`; of several,
    /// whichever comes first
    #[arg(long, value_name = "END", value_parser = Until::from_str)]
    until: Vec<Until>,
    /// Take what is there now, and end
    #[arg(long)]
    once: bool,
    /// Workers that run inputs, beside the one that minimizes [default: 1, as the fuzzer needs
    /// processors, too]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1024))]
    jobs: Option<u32>,
    /// Longest input; larger files are not run [default: 256M]
    #[arg(long, value_name = "SIZE", value_parser = amounts::size)]
    max_len: Option<u64>,
    /// Look for leaks in inputs that do not crash, where the program has LeakSanitizer; of files
    /// named leak-* it is always done
    #[arg(long)]
    leaks: bool,
    // There is always a worker of its own for it, so that inline and worker are the same.
    #[command(flatten)]
    shrink: ShrinkArgs,
    /// Go on with the campaign of the output directory: what is done is not run again
    #[arg(long)]
    resume: bool,
    /// Show lines instead of the whole screen
    #[arg(long)]
    plain: bool,
    /// A file of groups to mute: 12 or more hex digits of a major key, or stable:HEX, a line
    #[arg(long, value_name = "FILE")]
    known: Option<PathBuf>,
    /// Take the groups that this other output directory has for known ones: they are filed and not
    /// minimized, and the exit code is 4 where there are no others
    #[arg(long, value_name = "OUT")]
    against: Option<PathBuf>,
    #[command(flatten)]
    reports: ReportArgs,
}

/// Runs the command.
pub fn run(args: Args, output: &Output) -> Result<Exit, Failure> {
    args.shrink.check()?;
    check_places(&args)?;
    args.reports.check()?;
    let target = args.target.target()?;
    let stop = signals::stop_flag()?;
    let deadline = signals::deadline(args.total_time, &stop)?;
    let started = signals::unless_stopped(&stop, args.target.probe(&target, output))?;
    let way = started.executor.way();
    output.detail(&format!("running by {way}: {}", started.why));
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
                    .hint("what is watched is only read: choose another directory with --out"));
            }
            Err(error) if args.once => {
                return Err(Failure::file(dir, "reading", &error)
                    .hint("without --once it would be waited for"));
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
