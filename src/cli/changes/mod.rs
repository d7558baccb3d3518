//! `ddfuzz changes`: finds which changes between two versions of a program make it fail.

mod came_back;
mod crash;
mod failure;
mod job;
mod replay;
mod scripts;
mod search_log;
mod subject;

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use clap::builder::{OsStringValueParser, TypedValueParser};

use super::target::assignment;
use super::{Exit, Failure, Output, signals, values};
use crate::changes::{ChangeRecord, ChangesResult};
use crate::report::size;
use crate::report::text::printable;

pub(in crate::cli) use came_back::{note_check, tell};
pub(in crate::cli) use replay::{rebuild, verify};

/// Find which changes between two versions of a program make it fail
///
/// The first version works, the second fails. The changes between them are applied to the first in
/// ever smaller sets, built and tested, until no change can be left out of the set: first by
/// commits, as `git bisect` does, then by lines. The repository is only read; builds take place
/// below the output directory.
#[derive(clap::Args)]
#[command(after_help = "Example:\n  \
    ddfuzz changes v1.0..HEAD --run ./check.sh\n  \
    ddfuzz changes v1.0..HEAD --build 'make -k' --input crash-1 -- ./program @@\n  \
    ddfuzz changes v1.0..HEAD --group 3fa9c1 -o ddfuzz-out -- ./program @@\n  \
    ddfuzz changes program-1.0/ program-1.1/ --build make --run 'test $(./program) = 5'")]
pub struct ChangesArgs {
    /// Two revisions A..B of a git repository, or two directories: the version that works and the
    /// version that fails
    #[arg(value_name = "A..B | OLD NEW", num_args = 1..=2, required = true)]
    versions: Vec<OsString>,
    /// A directory of the repository [default: the current directory]
    #[arg(long, value_name = "DIR")]
    repo: Option<PathBuf>,
    /// Shell command that builds the program, run in a copy of each version [default: by the files
    /// of the version; none with --run]
    #[arg(long, value_name = "CMD")]
    build: Option<String>,
    /// Shell command that tests a version: it exits with 0 if the version works, with 125 if it
    /// cannot tell, and with another status below 128 if it fails
    #[arg(long, value_name = "CMD", required_unless_present_any = ["program", "group"], conflicts_with = "program")]
    run: Option<String>,
    /// The program that crashes and its arguments, after `--`: a path in the version after its
    /// build. @@ in an argument is replaced by the path of a file with the input; without @@ the
    /// program reads the input from stdin
    #[arg(last = true, value_name = "PROGRAM")]
    program: Vec<OsString>,
    /// The input of the program, on stdin or as the file @@
    #[arg(long, value_name = "FILE")]
    input: Option<PathBuf>,
    /// Regular expression that the output of a failing --run has to match; for a PROGRAM, the class
    /// or key of its crash. Other failures are unresolved
    #[arg(long, value_name = "REGEX|KEY")]
    expect: Option<String>,
    /// Search for the change that causes the crash of this group of the output directory, with its
    /// reproducer as the input. The program is the recorded one unless one is given; its
    /// environment, --crash-exit, and the limit that a hang or out-of-memory failure exceeds are
    /// the recorded ones unless given
    #[arg(long, value_name = "GROUP", conflicts_with_all = ["run", "input", "expect"])]
    group: Option<PathBuf>,
    /// Search for one change that makes the failure come once others are applied, instead of a
    /// smallest set that makes the first version fail
    #[arg(long)]
    difference: bool,
    /// Do not search by commits: search all changes at once
    #[arg(long)]
    no_history: bool,
    /// Output directory
    #[arg(short, long, value_name = "DIR", default_value = "ddfuzz-out")]
    out: PathBuf,
    /// Number of versions that are built and tested at the same time; the result does not depend on
    /// it
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=1024))]
    jobs: u32,
    /// Maximum number of tests, including those of an earlier call that this one continues
    #[arg(long, value_name = "N")]
    budget_tests: Option<u64>,
    /// Maximum time of all builds and tests of the search, including those of an earlier call that
    /// this one continues
    #[arg(long, value_name = "TIME", value_parser = values::time)]
    budget_time: Option<Duration>,
    /// Limit on the CPU time of a test [default: 60s, then adapted to both versions]
    #[arg(long, value_name = "TIME", value_parser = values::time_limit)]
    timeout: Option<Duration>,
    /// Limit on the time of a build [default: 1h, then adapted to both versions]
    #[arg(long, value_name = "TIME", value_parser = values::time_limit)]
    build_timeout: Option<Duration>,
    /// Limit on the memory of each process of a build or test [default: the memory of this machine]
    #[arg(long, value_name = "SIZE", value_parser = values::memory_limit)]
    memory: Option<u64>,
    /// Set an environment variable for builds and tests; may be repeated
    #[arg(hide_short_help = true, long, value_name = "K=V", value_parser = OsStringValueParser::new().try_map(assignment))]
    env: Vec<(OsString, OsString)>,
    /// Treat this exit status of PROGRAM as a crash
    #[arg(hide_short_help = true, long, value_name = "N", conflicts_with = "run", value_parser = clap::value_parser!(i32).range(1..=255))]
    crash_exit: Option<i32>,
    /// Run builds and tests in a sandbox: they can write to their directory only, and have no
    /// network
    #[arg(hide_short_help = true, long)]
    sandbox: bool,
    /// Accepted and not needed: an interrupted search is always continued
    #[arg(hide_short_help = true, long, conflicts_with = "force")]
    resume: bool,
    /// Replace the result and the log of another search
    #[arg(long)]
    force: bool,
}

pub fn run(args: ChangesArgs, output: &Output) -> Result<Exit, Failure> {
    let stop = signals::stop_flag()?;
    let subject = subject::Subject::of(&args, output);
    let result = subject.and_then(|subject| job::search(&args, &subject, &stop, output));
    let result = signals::unless_stopped(&stop, result)?;
    output.result(&text(&result), &result);
    Ok(Exit::Done)
}

/// Maximum number of changes that the printed result lists one by one.
const SHOWN: usize = 6;

/// Maximum number of commits that the printed result names for one change: the newest ones.
const SHOWN_COMMITS: usize = 2;

/// Formats the result of a search for changes as text: at most six changes, the counts of tests and
/// builds, and the paths of the patches and the log.
fn text(result: &ChangesResult) -> String {
    let mut lines = vec![heading(result)];
    lines.extend(result.changes.iter().take(SHOWN).map(change_line));
    if let more @ 1.. = result.changes.len().saturating_sub(SHOWN) {
        lines.push(format!("  and {more} more in changes.json"));
    }
    if result.interference {
        lines.push(
            "no commit alone brings the failure: changes of several commits are needed".to_owned(),
        );
    }
    if let count @ 1.. = result.found_despite_unbuildable {
        let count = size::counted(count + 1, "commit");
        lines.push(format!(
            "the changes are found among {count} of which only the last could be tested"
        ));
    }
    let tests = size::counted(result.tests.executed, "test");
    let builds = size::counted(result.builds.run, "build");
    lines.push(format!(
        "{} in {tests} ({} unresolved), {builds}",
        result.claim, result.tests.unresolved
    ));
    if result.alternates {
        lines.push(
            "the test alternates: without one of the changes it has passed and failed, so that nothing \
             is proved"
                .to_owned(),
        );
    }
    if result.budget_used_up {
        lines
            .push("the budget is used up: the same command with a larger one continues".to_owned());
    }
    if let unbuildable @ 1.. = result.removals_that_do_not_build {
        let removals = size::counted(result.removals, "removal");
        lines.push(format!("{unbuildable} of {removals} do not build"));
    }
    for (name, path) in [
        ("cause", &result.cause),
        ("difference", &result.difference),
        ("applied", &result.applied),
    ] {
        if let Some(path) = path {
            lines.push(format!(
                "{name:<11}{}",
                printable(&path.0.to_string_lossy())
            ));
        }
    }
    lines.push(format!(
        "{:<11}{}",
        "log",
        printable(&result.log.0.to_string_lossy())
    ));
    lines.join("\n")
}

/// Formats the first line of a result: how many changes were found, and what they do. With the goal
/// `cause` they make the old version fail by themselves; otherwise they make the failure come once
/// other changes are applied.
fn heading(result: &ChangesResult) -> String {
    // Records of one change that can only be applied together count once.
    let found = result
        .changes
        .iter()
        .filter(|change| !change.joined)
        .count();
    let count = size::counted(found as u64, "change");
    match (result.goal, found) {
        ("cause", 1) => format!("{count} alone makes the old version fail:"),
        ("cause", _) => format!("{count} alone make the old version fail:"),
        (_, 1) if result.applied.is_none() => format!("{count} makes the failure come:"),
        (_, 1) => {
            format!("{count} makes the failure come, once the others of applied.patch are applied:")
        }
        _ => format!("{count} make the failure come, once those of applied.patch are applied:"),
    }
}

fn change_line(change: &ChangeRecord) -> String {
    let file = change.file.0.to_string_lossy();
    let now = change.new_file.as_ref().map(|now| now.0.to_string_lossy());
    let place = match (change.kind, change.new, now) {
        ("hunk", [line, _], Some(now)) => format!("{file}:{} (now {now}:{line})", change.old[0]),
        ("hunk", [line, 0], None) => format!("{file}:{line} (lines deleted after it)"),
        ("hunk", [line, _], None) => format!("{file}:{line}"),
        (kind, _, Some(now)) => format!("{file} ({kind}, now {now})"),
        (kind, _, None) => format!("{file} ({kind})"),
    };
    let function = match change.function.is_empty() {
        true => String::new(),
        false => format!(" in {}", change.function),
    };
    let mut commits: Vec<String> = (change.commits.iter().take(SHOWN_COMMITS))
        .map(|commit| {
            let id = &commit.commit[..commit.commit.len().min(10)];
            format!("{id} {} {}: {}", commit.date, commit.author, commit.subject)
        })
        .collect();
    if let more @ 1.. = change.commits.len().saturating_sub(SHOWN_COMMITS) {
        commits.push(format!("and {more} more"));
    }
    let from = match commits.is_empty() {
        true if change.is_of_no_commit => {
            ", of no commit of the range: the branch of the old version changed it".to_owned()
        }
        true => String::new(),
        false => format!(", {}", commits.join("; ")),
    };
    let with = if change.joined { "  with " } else { "" };
    printable(&format!("  {with}{place}{function}{from}"))
}
