//! Plans a study: which utilities (system programs) are run, and how many runs each gets.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use super::{RevisitArgs, StudySandbox};
use crate::campaign::study::list::{List, Skipped, installed};
use crate::campaign::study::{
    RunEnvironment, Selection, SkipReason, StudyPlan, StudyRequest, StudySettings, Utility,
};
use crate::campaign::{DEFAULT_MAX_LEN, Deadline, Variants};
use crate::cli::run::workers;
use crate::cli::{Exit, Failure, Output};
use crate::exec::{AbandonWhen, Limits, Program, Target, Way, targets_reach};
use crate::files::OsText;
use crate::store::{Campaign, KnownGroups, StudyRecord};

/// Default number of runs of each utility (fuzzed system program): the number of files in each
/// small data set of the fuzz study of 2020.
const RUNS_OF_EACH: u64 = 1200;

/// The utilities (system programs to fuzz) selected for a study, and the name of the list that they
/// are from.
pub(super) struct StudySelection {
    list: String,
    utilities: Vec<Utility>,
}

impl RevisitArgs {
    /// Returns the limits on time and memory of each run of a utility (fuzzed system program), as
    /// set by `--timeout` and `--memory`.
    pub(super) fn limits(&self) -> Limits {
        let usual = Limits::default();
        let mut limits = Limits::with_cpu(self.timeout.unwrap_or(usual.cpu));
        limits.memory = self.memory.unwrap_or(limits.memory);
        limits
    }

    /// Converts these options to the record of what a study is asked for; calls that resume the
    /// study read this record.
    fn asked(&self) -> StudyRequest {
        StudyRequest {
            freeze_start: self.freeze_start,
            list: self.list.as_ref().map(OsText::from),
            preset: self.preset.map(|preset| preset.to_string()),
            shard: self.shard.map(|shard| (shard.part, shard.of)),
            max_len: self.max_len.unwrap_or(DEFAULT_MAX_LEN),
            channels: self.channels(),
            utilities: Some(self.requested()),
        }
    }
}

/// Selects the utilities (system programs to fuzz) of a study by the options, and sets the number
/// of runs of each; prints the lines of the list of utilities that cannot be parsed. Fails if no
/// utility is selected.
pub(super) fn select_utilities(
    args: &RevisitArgs,
    output: &Output,
) -> Result<StudySelection, Failure> {
    let list = read_list(args)?;
    tell_invalid_lines(&list, output);
    let selection = Selection {
        requested: args.requested(),
        channels: args.channel.clone(),
        path: searched_folders(),
        list,
    };
    let mut utilities = selection.utilities();
    if utilities.is_empty() {
        return Err(Failure::usage("there is no utility to run")
            .hint("name utilities, or give a --list, or a --package that is installed"));
    }
    share_runs(args, &mut utilities);
    if let Some(shard) = args.shard {
        utilities.retain(|utility| shard.has(utility.place));
    }
    Ok(StudySelection {
        list: selection.list.name,
        utilities,
    })
}

/// Maximum number of invalid lines of a list of utilities (system programs) that are printed.
const PRINTED_LINES: usize = 10;
/// Maximum number of characters of a line, and of what is wrong with it, that are printed.
const PRINTED_CHARS: usize = 120;

/// Prints the first invalid lines of a list of utilities (system programs), which could not be
/// parsed, and how many more there are.
fn tell_invalid_lines(list: &List, output: &Output) {
    let excerpt = |text: &str| match text.char_indices().nth(PRINTED_CHARS) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    };
    let invalid: Vec<&Skipped> = (list.skipped.iter())
        .filter(|skipped| skipped.denied.is_none())
        .collect();
    for skipped in invalid.iter().take(PRINTED_LINES) {
        let (text, why) = (excerpt(&skipped.text), excerpt(&skipped.why));
        output.say(&format!(
            "{}, line {}: {text}: {why}",
            list.name, skipped.line
        ));
    }
    if let Some(more) = invalid
        .len()
        .checked_sub(PRINTED_LINES)
        .filter(|more| *more > 0)
    {
        output.say(&format!("{}: {more} more lines are invalid", list.name));
    }
}

/// Number of utilities (fuzzed system programs) that a message names as examples.
const NAMED_UTILITIES: usize = 5;

/// Fails if none of the selected utilities (system programs to fuzz; `planned`) can be run. With
/// `--shard` it never fails, because another part of the list may have utilities that can be run.
pub(super) fn refuse_without_utilities(
    args: &RevisitArgs,
    planned: &StudySelection,
) -> Result<(), Failure> {
    let reasons: Option<Vec<String>> = (planned.utilities.iter())
        .map(|utility| Some(format!("{} ({})", utility.name, how_skipped(utility)?)))
        .collect();
    let Some(mut reasons) = reasons.filter(|reasons| !reasons.is_empty() && args.shard.is_none())
    else {
        return Ok(());
    };
    let more = reasons.len().saturating_sub(NAMED_UTILITIES);
    reasons.truncate(NAMED_UTILITIES);
    let mut message = format!("no utility can be run: {}", reasons.join(", "));
    if more > 0 {
        message.push_str(&format!(" and {more} more"));
    }
    Err(Failure::new(Exit::Baseline, "no-utility", message)
        .hint("name programs that are installed; their arguments come from --list FILE"))
}

/// Returns why a study does not run the utility (system program), as words for the user; `None` if
/// the study runs it.
fn how_skipped(utility: &Utility) -> Option<String> {
    let reason = utility.skip_reason.as_ref()?;
    Some(match reason.note() {
        Some(note) => format!("{}: {note}", reason.label()),
        None => reason.label().to_owned(),
    })
}

fn read_list(args: &RevisitArgs) -> Result<List, Failure> {
    let Some(path) = &args.list else {
        return Ok(List::debian());
    };
    let bytes = std::fs::read(path)
        .map_err(|error| Failure::file(path, "reading the list of utilities", &error))?;
    if bytes.contains(&0) {
        let message = format!(
            "{} is no list of utilities: it is not a text file",
            path.display()
        );
        return Err(Failure::usage(message).path(path));
    }
    let text = String::from_utf8_lossy(&bytes);
    let list = List::parse(&path.display().to_string(), &text);
    if list.entries.is_empty() && list.skipped.is_empty() {
        let message = format!("{} contains no utilities", path.display());
        let hint = "a line is `stdin|file|cp NAME|two_files|pty UTILITY [OPTIONS] ARGUMENTS`";
        return Err(Failure::usage(message).path(path).hint(hint));
    }
    Ok(list)
}

/// Sets the number of runs of each utility (system program to fuzz). It is the value of `--runs`
/// divided evenly among the utilities that can be run, with the remainder for the first ones;
/// without `--runs`, it is 1200 each. Utilities that are skipped get 0. Does nothing if only
/// `--time` is given.
fn share_runs(args: &RevisitArgs, utilities: &mut [Utility]) {
    let all = match (args.runs, args.time) {
        (None, Some(_)) => return,
        (runs, _) => runs,
    };
    let runnable = utilities
        .iter()
        .filter(|it| it.skip_reason.is_none())
        .count() as u64;
    let all = all.unwrap_or(RUNS_OF_EACH.saturating_mul(runnable));
    let mut over = all % runnable.max(1);
    for utility in utilities {
        if utility.skip_reason.is_some() {
            utility.runs = Some(0);
            continue;
        }
        utility.runs = Some(all / runnable + u64::from(over > 0));
        over = over.saturating_sub(1);
    }
}

/// Returns the directories of PATH in two lists: first those that sandboxed utilities (fuzzed
/// system programs) can access, as they run under an account such as `nobody`; then the others.
fn path_folders() -> (Vec<PathBuf>, Vec<PathBuf>) {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders = std::env::split_paths(&path).filter(|folder| folder.is_absolute());
    folders.partition(|folder| targets_reach(folder))
}

/// Returns the directories of PATH that sandboxed utilities (fuzzed system programs) can access, as
/// they run under an account such as `nobody`; then the system's default directories for programs.
fn open_folders() -> Vec<PathBuf> {
    let (mut folders, _) = path_folders();
    for folder in installed::PATH.map(PathBuf::from) {
        if !folders.contains(&folder) {
            folders.push(folder);
        }
    }
    folders
}

/// Returns the directories in which utilities (system programs to fuzz) are searched. Last come the
/// directories that sandboxed utilities cannot access, as they run under an account such as
/// `nobody`; utilities from there are copied before they are run.
fn searched_folders() -> Vec<PathBuf> {
    let mut folders = open_folders();
    folders.extend(path_folders().1);
    folders
}

/// Returns the PATH with which utilities (fuzzed system programs) are run: the directories of
/// ddfuzz's own PATH that sandboxed utilities can access, then the system's default directories.
fn path_of_utilities() -> OsString {
    std::env::join_paths(open_folders()).unwrap_or_else(|_| installed::PATH.join(":").into())
}

/// Builds the settings of a study from the options, the selected utilities (`planned`), the record
/// of its campaign, and whether utilities run in a sandbox (`held`). Runs of utilities are abandoned
/// under the conditions `abandon_when`.
pub(super) fn settings(
    args: &RevisitArgs,
    planned: StudySelection,
    campaign: &Campaign,
    held: StudySandbox,
    abandon_when: &AbandonWhen,
) -> StudySettings {
    let seed = campaign.seed.unwrap_or_default();
    let limits = args.limits();
    let nothing = Target::new(Program::Path(PathBuf::from("/")));
    let nothing = nothing.abandoned_when(abandon_when.clone());
    let mut minimizing = (args.shrink).minimizing(nothing, Way::Command, args.timeout.is_none());
    let jobs = workers(args.jobs);
    (minimizing.seed, minimizing.jobs) = (Some(seed), jobs);
    minimizing.variants = args.shrink.variants(Variants::None);
    StudySettings {
        environment: RunEnvironment {
            limits,
            sandbox: held.sandbox,
            path: path_of_utilities(),
            freeze_start: args.freeze_start,
            abandon_when: abandon_when.clone(),
        },
        plan: StudyPlan {
            seed,
            max_len: args.max_len.unwrap_or(DEFAULT_MAX_LEN),
            set: args
                .preset
                .into_iter()
                .flat_map(|preset| preset.inputs(seed))
                .collect(),
        },
        request: args.asked(),
        time: args.time,
        deadline: Deadline::default(),
        jobs,
        when: args.shrink.when(),
        minimizing,
        replays: args.replays,
        known: KnownGroups::default(),
        record: StudyRecord {
            v: StudyRecord::VERSION,
            campaign: campaign.id.clone(),
            host: campaign.host.clone(),
            system: system(),
            kernel: kernel(),
            started: campaign.started.clone(),
            seed,
            list: planned.list,
            shard: args.shard.map(|shard| (shard.part, shard.of)),
            sandbox: held.parts,
            utilities: Vec::new(),
        },
        utilities: planned.utilities,
    }
}

/// Returns the name of the operating system, from `/etc/os-release`; "Linux" if that is missing.
fn system() -> String {
    let text = std::fs::read_to_string(Path::new("/etc/os-release")).unwrap_or_default();
    let name = text
        .lines()
        .find_map(|line| line.strip_prefix("PRETTY_NAME="));
    name.map_or_else(
        || "Linux".to_owned(),
        |name| name.trim_matches('"').to_owned(),
    )
}

fn kernel() -> String {
    let release = std::fs::read_to_string("/proc/sys/kernel/osrelease");
    release.unwrap_or_default().trim().to_owned()
}

/// A utility (system program) in the JSON result of `--dry-run`.
#[derive(serde::Serialize)]
struct PlannedUtility<'a> {
    utility: &'a str,
    package: Option<&'a str>,
    version: Option<&'a str>,
    /// Ways in which the utility would be called; empty if the list of utilities does not say how.
    channels: Vec<String>,
    /// Label that a study gives a utility that it does not run; null if it would run it.
    label: Option<&'a str>,
    /// Why the study would not run the utility; null if it would, or if the label says all.
    note: Option<String>,
}

impl PlannedUtility<'_> {
    fn of(utility: &Utility) -> PlannedUtility<'_> {
        let reason = utility.skip_reason.as_ref();
        PlannedUtility {
            utility: &utility.name,
            package: utility.package.as_deref(),
            version: utility.version.as_deref(),
            channels: utility.invocations.iter().map(|it| it.name()).collect(),
            label: reason.map(SkipReason::label),
            note: reason.and_then(SkipReason::note),
        }
    }
}

/// Prints the utilities (system programs) that a study would run and how it would run each, or why
/// it would skip it (`--dry-run`). Returns the exit code.
pub(super) fn show(planned: &StudySelection, output: &Output) -> Exit {
    let mut text = String::new();
    for utility in &planned.utilities {
        let of = [&utility.package, &utility.version].map(|it| it.clone().unwrap_or_default());
        let how = match how_skipped(utility) {
            Some(how) => how,
            None if utility.invocations.is_empty() => "in no list".to_owned(),
            None => {
                let names = utility.invocations.iter().map(|course| course.name());
                names.collect::<Vec<_>>().join(", ")
            }
        };
        let of = match of.join(" ").trim() {
            "" => String::new(),
            of => format!(" ({of})"),
        };
        text.push_str(&format!("{}{of}: {how}\n", utility.name));
    }
    let utilities: Vec<_> = planned.utilities.iter().map(PlannedUtility::of).collect();
    output.result(
        text.trim_end(),
        &serde_json::json!({ "utilities": utilities }),
    );
    Exit::Done
}
