//! `ddfuzz check`: after a fix, each group of an output directory fixed, same, or other.

use std::path::{Path, PathBuf};

use super::run::processors;
use super::target::TargetArgs;
use super::{Exit, Failure, Output, known, signals, ui};
use crate::campaign::Recheck;
use crate::exec::Target;
use crate::report::{CheckResult, check_table};
use crate::store::{Campaign, Group, Kind, KnownGroups, Reader};

/// Run the inputs of an output directory again: is each group fixed?
///
/// The reproducers of each group are run, and the inputs as found where those do not fail any
/// more. The directory is only read.
#[derive(clap::Args)]
#[command(after_help = "Example:\n  ddfuzz check ddfuzz-out\n  \
                        ddfuzz check ddfuzz-out -- ./program-rebuilt @@")]
pub struct Args {
    /// The output directory
    out: PathBuf,
    #[command(flatten)]
    target: TargetArgs,
    /// Workers [default: the number of processors]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1024))]
    jobs: Option<u32>,
    /// A file of groups to pass over: 12 or more hex digits of a major key, or stable:HEX, a line
    #[arg(long, value_name = "FILE")]
    known: Option<PathBuf>,
}

/// Runs the command.
pub fn run(args: Args, output: &Output) -> Result<Exit, Failure> {
    let reader = Reader::open(&args.out)?;
    let known = known::read(args.known.as_deref())?;
    let groups = groups(&reader, &known)?;
    let target = target(&args, &reader)?;
    let stop = signals::stop_flag()?;
    let started = signals::unless_stopped(&stop, args.target.probe(&target, output))?;
    let way = started.executor.way();
    output.detail(&format!("running by {way}: {}", started.why));
    let recheck = Recheck {
        reader: &reader,
        target: &target,
        way,
        groups: &groups,
        stop: &stop,
    };
    let jobs = args.jobs.map_or_else(processors, |jobs| jobs as usize);
    let line = ui::Counting::new(output, "group", groups.len() as u64);
    let checked = recheck.run(jobs, &|done| line.show(done, "checked"));
    let checked = signals::unless_stopped(&stop, checked.map_err(Failure::from))?;
    drop(line);
    drop(started);
    let mut result = CheckResult::default();
    let complete = checked.iter().all(Option::is_some);
    checked
        .into_iter()
        .flatten()
        .for_each(|group| result.add(group));
    output.result(&check_table(&result, ui::stdout_width()), &result);
    Ok(match complete {
        false => Exit::Interrupted,
        true if result.fixed == result.groups.len() as u64 => Exit::Done,
        true => Exit::Found,
    })
}

/// All groups that are not muted.
fn groups(reader: &Reader, known: &KnownGroups) -> Result<Vec<Group>, Failure> {
    let mut all = Vec::new();
    for kind in Kind::ALL {
        for group in reader.groups(kind)? {
            let major = group.record.major.short();
            let muted = known.has_major(&major) || reader.is_known_by_names(kind, &major, known)?;
            if !muted {
                all.push(group);
            }
        }
    }
    Ok(all)
}

/// The target that is asked for, with the recorded limits where none are; else the recorded one.
fn target(args: &Args, reader: &Reader) -> Result<Target, Failure> {
    let file = reader.campaigns()?;
    let campaigns: Vec<&Campaign> = file.all().collect();
    let limits = campaigns.iter().find_map(|campaign| campaign.limits);
    if args.target.is_named() {
        let mut target = args.target.target()?;
        if let Some(limits) = limits {
            target.limits = args.target.limits_over(limits);
        }
        return Ok(target);
    }
    recorded(&campaigns, &args.out).map(|mut target| {
        target.limits = args.target.limits_over(target.limits);
        target
    })
}

/// The one target that all campaigns of the directory have.
fn recorded(campaigns: &[&Campaign], out: &Path) -> Result<Target, Failure> {
    let unclear = |message: &str| {
        Err(Failure::usage(format!("{} {message}", out.display()))
            .path(out)
            .hint("name the program behind `--`"))
    };
    let Some((first, others)) = campaigns.split_first() else {
        return unclear("does not say what was run");
    };
    let (Some(record), Some(limits)) = (&first.target, first.limits) else {
        return unclear("does not say what was run");
    };
    let same =
        |other: &&Campaign| (other.target.as_ref()).is_some_and(|other| record.same_target(other));
    if !others.iter().all(same) {
        return unclear("holds the findings of several targets");
    }
    match record.target(limits) {
        Some(target) => Ok(target),
        None => unclear("does not say what was run"),
    }
}
