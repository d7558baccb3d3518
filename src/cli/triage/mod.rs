//! `ddfuzz triage`: runs, keys and groups crash files that exist already.

mod against;
mod archive;
mod crew;
mod inputs;
mod job;
mod tally;

use std::path::PathBuf;

use super::reports::{ReportArgs, target_name};
use super::run::processors;
use super::target::TargetArgs;
use super::{Exit, Failure, Output, amounts, known, next, signals, ui};
use crate::exec::Target;
use crate::report::ci::Findings;
use crate::report::{
    TriageGroup, TriageResult, triage_cannot_tell, triage_doubts, triage_groups_table,
    triage_summary, triage_table,
};
use crate::store::KnownGroups;
use crate::triage::Conditions;
use against::Against;
use job::Job;

/// Longest input where nobody says, in bytes.
const MAX_LEN: u64 = 256 << 20;

/// Run, key and group crash files
///
/// Directories of libFuzzer, cargo-fuzz, AFL++, honggfuzz and ddfuzz are recognised, and only
/// their crashes are taken; of any other directory every file is. What is given is only read.
#[derive(clap::Args)]
#[command(
    after_help = "Example:\n  ddfuzz triage crash-1 artifacts/ -- ./program @@\n  \
                  ddfuzz triage afl-out -o groups --resume -- ./program @@\n  \
                  ddfuzz triage afl-out --against groups --known known.txt -- ./program @@"
)]
pub struct Args {
    /// Crash files, or directories of them; they are only read
    #[arg(required = true, value_name = "INPUT_OR_DIR")]
    pub(in crate::cli) inputs: Vec<PathBuf>,
    #[command(flatten)]
    pub(in crate::cli) target: TargetArgs,
    /// Workers [default: the number of processors]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1024))]
    jobs: Option<u32>,
    /// Look for leaks in inputs that do not crash, where the program has LeakSanitizer; of files
    /// named leak-* it is always done
    #[arg(long)]
    leaks: bool,
    /// File the crashes in this output directory, too: the least input of each minor key
    #[arg(short, long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Go on with what was triaged into --out before: what is done is not run again
    #[arg(long, requires = "out")]
    resume: bool,
    /// Say which groups this other output directory does not have; exit with 4 if it has all
    #[arg(long, value_name = "OUT")]
    against: Option<PathBuf>,
    /// A file of groups to mute: 12 or more hex digits of a major key, or stable:HEX, a line
    #[arg(long, value_name = "FILE")]
    known: Option<PathBuf>,
    /// Longest input; larger files are not run [default: 256M]
    #[arg(long, value_name = "SIZE", value_parser = amounts::size)]
    max_len: Option<u64>,
    #[command(flatten)]
    reports: ReportArgs,
}

/// Runs the command.
pub fn run(args: Args, output: &Output) -> Result<Exit, Failure> {
    let target = args.target.target()?;
    let known = known::read(args.known.as_deref())?;
    let against = args.against.as_deref().map(Against::read).transpose()?;
    args.reports.check()?;
    let found = inputs::find(&args.inputs, args.out.as_deref(), output)?;
    let stop = signals::stop_flag()?;
    let started = signals::unless_stopped(&stop, args.target.probe(&target, output))?;
    let way = started.executor.way();
    output.detail(&format!("running by {way}: {}", started.why));
    let name = target_name(&target);
    let job = Job {
        target,
        way,
        jobs: args.jobs.map_or_else(processors, |jobs| jobs as usize),
        max_len: args.max_len.unwrap_or(MAX_LEN),
        leaks: args.leaks,
        out: args.out.clone(),
        resume: args.resume,
        found: &found,
        stop: &stop,
    };
    let mut result = signals::unless_stopped(&stop, job.run(output))?;
    drop(started);
    mute(&mut result, &known);
    if let Some(against) = &against {
        compare(&mut result, against, &job.target);
    }
    let findings = Findings {
        target: name,
        summary: triage_summary(&result),
        groups: result.groups.iter().map(Into::into).collect(),
    };
    args.reports.write(&findings)?;
    let each = output.verbose || args.inputs.iter().all(|input| !input.is_dir());
    output.result(&text(&result, each), &result);
    let doubts = [triage_doubts(&result), triage_cannot_tell(&result)];
    doubts.iter().flatten().for_each(|text| output.say(text));
    match (&args.out, result.groups.first()) {
        (Some(out), Some(group)) => next::after_groups(output, out, &group.major),
        (None, Some(_)) => next::after_triage(output),
        _ => {}
    }
    if result.interrupted {
        let how = match args.out {
            Some(_) => "the same command with --resume goes on",
            None => "with -o DIR it could be gone on with",
        };
        output.say(&format!("interrupted: {how}"));
    }
    Ok(exit(&result))
}

/// Says which groups are muted.
fn mute(result: &mut TriageResult, known: &KnownGroups) {
    for group in &mut result.groups {
        let stable = group.stable.as_deref().and_then(|text| text.parse().ok());
        group.known = known.has_major(&group.major) || known.has_stable(stable);
    }
}

/// Says which groups are new, and of which groups of the other directory nothing can be said.
fn compare(result: &mut TriageResult, against: &Against, target: &Target) {
    let conditions = Conditions {
        instrumentation: result.instrumentation.clone(),
        limits: target.limits,
        crash_exit: target.crash_exit,
    };
    for group in &mut result.groups {
        against.judge(group, &conditions);
    }
    result.cannot_tell = against.cannot_tell(&conditions);
}

fn text(result: &TriageResult, each: bool) -> String {
    let width = ui::stdout_width();
    let mut text = String::new();
    if each && !result.inputs.is_empty() {
        text.push_str(&triage_table(result, width));
        text.push('\n');
    }
    if !result.groups.is_empty() {
        text.push_str(&triage_groups_table(&result.groups, width));
    }
    text.push_str(&triage_summary(result));
    text
}

/// Files that were not read might have crashed: where nothing else did, that nothing was found is
/// not said.
fn exit(result: &TriageResult) -> Exit {
    let told = |group: &TriageGroup| !group.known && group.new != Some(false);
    if result.interrupted {
        Exit::Interrupted
    } else if result.groups.iter().any(told) {
        Exit::Found
    } else if !result.groups.is_empty() {
        Exit::Known
    } else if result.unread > 0 {
        Exit::Usage
    } else {
        Exit::Done
    }
}
