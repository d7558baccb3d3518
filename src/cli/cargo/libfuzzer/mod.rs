//! `--engine libfuzzer`: the libFuzzer that is built into a harness, started again after each
//! crash, while what it drops is grouped and minimized.

mod corpus;
mod flags;
mod process;
mod producer;
mod said;
mod scratch;

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use super::harness;
use super::project::Project;
use crate::campaign::Deadline;
use crate::campaign::watch::Watching;
use crate::cli::run::{Args, processors};
use crate::cli::watched::Watched;
use crate::cli::{Exit, Failure, Output, known, signals};
use crate::exec::{Target, Way};
pub use flags::Flags;
pub use process::{Attached, Process, flag};
use producer::timeout_flag;
pub use producer::{LibFuzzers, Plan};
pub use said::Said;
pub use scratch::Scratch;

/// Longest input where nobody says, in bytes.
pub const MAX_LEN: u64 = 256 << 20;

/// Fuzzes a target of the project until its time is over, its runs are made or the user stops it.
///
/// # Errors
/// Those of a campaign, and what keeps libFuzzer from running.
pub fn run(
    mut args: Args,
    project: &Project,
    name: &str,
    program: &Path,
    words: &[OsString],
    output: &Output,
) -> Result<Exit, Failure> {
    if let Some(option) = args.only_guided() {
        let message = format!("{option} does not work with --engine libfuzzer");
        return Err(Failure::usage(message).hint("omit it, or use --engine libafl"));
    }
    let output = &args.reports.check(output)?;
    args.target.program = vec![program.into()];
    let target = args.target.target()?;
    let stop = signals::stop_flag()?;
    let deadline = signals::deadline(args.total_time, &stop)?;
    let mut started = signals::unless_stopped(&stop, args.target.probe(&target, output))?;
    let way = started.executor.way();
    harness::check(&mut *started.executor, name, &project.corpus(name), output)?;
    let (plan, corpus) = plan(&args, project, name, program, words, output);
    let settings = Watching {
        deadline,
        ..watching(&args, target, way)?
    };
    let watched = Watched {
        settings: &settings,
        out: &args.out,
        resume: args.resume,
        seed: args.seed,
        engine: "libFuzzer".to_owned(),
        unit: "run",
        plain: args.plain,
        reports: &args.reports,
        stop: &stop,
    };
    let start = || {
        let mut all = LibFuzzers::start(plan, corpus, stop.clone())
            .map_err(|error| Failure::file(program, "starting libFuzzer of", &error))?;
        if args.resume {
            all.drop_again();
        }
        Ok(all)
    };
    watched.run(started, start, output)
}

/// What libFuzzer is called with, and where new inputs go: the first of the user's directories,
/// else the project's. The options of ddfuzz become flags, and those of the user stand behind
/// them, so that they hold.
fn plan(
    args: &Args,
    project: &Project,
    name: &str,
    program: &Path,
    words: &[OsString],
    output: &Output,
) -> (Plan, PathBuf) {
    let mut flags = Flags::of(words);
    let corpus = match flags.corpora.is_empty() {
        true => project.corpus(name),
        false => flags.corpora.remove(0),
    };
    let mut own: Vec<OsString> = Vec::new();
    if let Some(max_len) = args.max_len {
        own.push(format!("-max_len={max_len}").into());
    }
    if let Some(seed) = args.seed {
        // Of 32 bits there, and 0 stands for the clock.
        own.push(format!("-seed={}", (seed as u32).max(1)).into());
    }
    own.extend(args.target.timeout.map(timeout_flag));
    let (seeds, dictionaries) = args.seeds.named();
    own.extend(dictionaries.iter().map(|path| flag("dict", path)));
    flags.each.splice(0..0, own);
    flags.corpora.extend(seeds.iter().cloned());
    flags.time = Deadline::fuzzing(args.total_time, args.time.or(flags.time));
    flags.runs = args.runs.or(flags.runs);
    let jobs = args.jobs.map_or_else(processors, |jobs| jobs as usize);
    let folder = || project.artifacts(name).join("").into_os_string();
    let plan = Plan {
        program: program.to_owned(),
        env: args.target.env.clone(),
        artifact_prefix: flags.artifact_prefix.clone().unwrap_or_else(folder),
        jobs: if flags.starts_processes() { 1 } else { jobs },
        attached: Attached::Apart(output.verbose),
        again: true,
        flags,
    };
    (plan, corpus)
}

fn watching(args: &Args, target: Target, way: Way) -> Result<Watching, Failure> {
    Ok(Watching {
        // What it drops it says itself.
        sources: Vec::new(),
        max_len: args.max_len.unwrap_or(MAX_LEN),
        leaks: false,
        // Its time is libFuzzer's, and all that it drops within is examined.
        time: None,
        deadline: Deadline::default(),
        until: args.until.clone(),
        when: args.shrink.when(),
        jobs: 1,
        minimizing: args.minimizing(target, way),
        known: known::read_both(args.known.as_deref(), args.against.as_deref())?,
        waits_for_room: true,
    })
}
