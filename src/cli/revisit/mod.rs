//! `ddfuzz revisit`: repeats the fuzz studies of 1990 to 2020 on this machine. Options, output
//! directory, sandbox and result.

mod plan;
pub mod reports;

use std::path::PathBuf;
use std::str::FromStr;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use crate::campaign::generator::Preset;
use crate::campaign::study::{RequestedUtilities, StudyRequest, StudySettings, StudySummary};
use crate::campaign::{CampaignError, new_study, study};
use crate::cli::campaign_args::{MinimizationArgs, read_known_and_against};
use crate::cli::revisit::reports::{CompareArgs, Studied, StudyReportArgs};
use crate::cli::run::{of_full_disk, open_or_begin};
use crate::cli::target::file_sandbox;
use crate::cli::{Exit, Failure, Output, config, signals, ui, values};
use crate::exec::{Limits, Sandbox};
use crate::report::study::{StudyResult, table};
use crate::report::{EndedBy, size};
use crate::store::{Campaign, Kind, Reader, Store};

pub fn run(args: RevisitArgs, output: &Output) -> Result<Exit, Failure> {
    if args.compare.is_asked() {
        return args.compare.run(output);
    }
    let output = &args.reports.check(output)?;
    let args = args.resumed()?;
    let planned = plan::select_utilities(&args, output)?;
    if args.dry_run {
        return Ok(plan::show(&planned, output));
    }
    plan::refuse_without_utilities(&args, &planned)?;
    let held = choose_sandbox(&args, output)?;
    let known = read_known_and_against(args.known.as_deref(), None)?;
    let stop = signals::stop_flag()?;
    let deadline = signals::deadline(args.total_time, &stop)?;
    let limits = args.limits();
    let (store, campaign) = open_study(&args, limits)?;
    let resumed = args.resume && store.resumed();
    let abandon_when = signals::abandon_at(&stop);
    let settings = StudySettings {
        known,
        deadline,
        ..plan::settings(&args, planned, &campaign, held, &abandon_when)
    };
    output.detail(&format!("seed {}", settings.plan.seed));
    let mut screen = ui::CampaignLine::new(output);
    let store = Mutex::new(store);
    let summary = study::run(&store, &settings, &mut screen, &stop);
    drop(screen);
    let store = store.into_inner().unwrap_or_else(PoisonError::into_inner);
    report(&summary?, &store, resumed, &args, output)
}

/// Opens the output directory of a study: with `--resume` continues the study in it, else begins a
/// new one and keeps the earlier ones. Returns the opened directory and the record of the study.
fn open_study(args: &RevisitArgs, limits: Limits) -> Result<(Store, Campaign), Failure> {
    let mut fresh = new_study(limits);
    fresh.settings = config::settings().cloned();
    fresh.seed = (args.seed).or_else(|| u64::from_str_radix(&fresh.id, 16).ok());
    open_or_begin(&args.out, args.resume, fresh, |campaign| {
        check_same(args, campaign)
    })
}

fn check_same(args: &RevisitArgs, campaign: &Campaign) -> Result<(), Failure> {
    let unlike = |what: &str| {
        let message = format!("{} cannot be resumed: {what}", args.out.display());
        Err(Failure::usage(message)
            .path(&args.out)
            .hint("omit --resume to start a new study there, or choose another directory with -o"))
    };
    if campaign.target.is_some() {
        return unlike("it contains a campaign on one program, not a study");
    }
    if args.seed.is_some_and(|seed| campaign.seed != Some(seed)) {
        return unlike("its study has another --seed");
    }
    Ok(())
}

/// Whether the utilities of a study (the system programs that it fuzzes) run in a sandbox, and
/// which features the sandbox has.
struct StudySandbox {
    sandbox: Sandbox,
    /// Names of the sandbox features (such as Landlock) that this machine supports and the study
    /// uses; empty without a sandbox.
    parts: Vec<String>,
}

/// Decides whether the utilities (the fuzzed system programs) run in a sandbox. They do unless
/// `--no-sandbox` is given twice; given once, that option is an error. For a sandbox, prints the
/// features that this machine supports, and fails if they cannot protect the user's files.
fn choose_sandbox(args: &RevisitArgs, output: &Output) -> Result<StudySandbox, Failure> {
    match args.no_sandbox {
        0 => available_sandbox(output),
        1 => Err(Failure::usage(
            "--no-sandbox would let random input loose on programs that can write to this \
             machine and reach its network",
        )
        .hint("omit it, or give it twice if that is what you want")),
        _ => {
            output.say("warning: without the sandbox utilities can write to every file that their user may write to");
            Ok(StudySandbox {
                sandbox: Sandbox::Off,
                parts: Vec::new(),
            })
        }
    }
}

fn available_sandbox(output: &Output) -> Result<StudySandbox, Failure> {
    Ok(StudySandbox {
        sandbox: Sandbox::On,
        parts: file_sandbox(
            output,
            "utilities that write to files",
            "give --no-sandbox twice",
        )?,
    })
}

/// Prints the result of a study, writes the requested reports, and returns the exit code.
/// `resumed`: the call has continued the study.
fn report(
    summary: &StudySummary,
    store: &Store,
    resumed: bool,
    args: &RevisitArgs,
    output: &Output,
) -> Result<Exit, Failure> {
    let studied = Studied::read(store.reader())?;
    let full = summary
        .out_of_room
        .then(|| of_full_disk(summary.unstored, false));
    let warnings: Vec<String> = full.into_iter().collect();
    let call = StudyResult {
        runs: summary.runs,
        runs_per_s: summary.runs_per_s(),
        seconds: summary.fuzzed.as_secs_f64(),
        new_groups: summary.new_groups,
        ways: summary.ways.clone(),
        resumed,
        ended_by: match (summary.interrupted, args.time) {
            (true, _) => EndedBy::Interrupted,
            (false, Some(time)) if args.runs.is_none() || summary.fuzzed >= time => EndedBy::Time,
            (false, None) if summary.out_of_time => EndedBy::Time,
            (false, _) => EndedBy::Runs,
        },
        settings: config::settings().cloned(),
        warnings: warnings.clone(),
        ..StudyResult::default()
    };
    // Reports are written before the result is printed: if one fails, only the error is printed.
    args.reports.write(&studied.rows)?;
    for warning in &warnings {
        output.say(&format!("warning: {warning}"));
    }
    let text = format!(
        "{}\n{} in {:.1} s ({}/s): {}; results in {}",
        table(&studied.rows, ui::stdout_width()),
        size::counted(summary.runs, "run"),
        summary.fuzzed.as_secs_f64(),
        ui::rate(summary.runs_per_s()),
        match summary.new_groups {
            0 => "no new crash group".to_owned(),
            new => size::counted(new, "new crash group"),
        },
        store.reader().root().display(),
    );
    let result = call.with_results(&studied.rows, &studied.groups);
    output.result(&text, &result);
    let of_crash = |group: &&crate::report::study::StudyGroup| group.view.kind == Kind::Crash;
    if let Some(group) = studied.groups.iter().find(of_crash) {
        output.suggest_for_groups(&args.out, &group.view.major.short(), None);
    }
    Ok(exit(summary))
}

fn exit(summary: &StudySummary) -> Exit {
    match (summary.new_groups + summary.unstored, summary.known_crashes) {
        _ if summary.interrupted => Exit::Interrupted,
        (1.., _) => Exit::Found,
        (0, 1..) => Exit::Known,
        (0, 0) => Exit::Done,
    }
}

/// Heading in `--help` of the options that select utilities (the system programs to fuzz).
const WHICH: &str = "Selection of utilities";

/// Repeat the fuzz studies of 1990 to 2020 on the utilities of this machine
///
/// Runs each utility in a sandbox on random inputs: on stdin, as a file, or typed at a terminal.
/// Failures are grouped and minimized; the result is a table like those of the papers.
#[derive(clap::Args)]
#[command(after_help = "Example:\n  ddfuzz revisit boxes nvi --time 60s\n  \
                        ddfuzz revisit --installed --runs 200000 --seed 1 -o study\n  \
                        ddfuzz revisit --list run_test/test_Linux/regular --time 2h --shard 2/5\n  \
                        ddfuzz revisit --compare bookworm trixie")]
pub struct RevisitArgs {
    /// Run these utilities, given by name or path [default: all of --list]
    #[arg(value_name = "UTILITY")]
    pub(super) utilities: Vec<String>,
    /// List of utilities, in the format of `run.py` of the study of 2020 [default: a list for
    /// Debian 12]
    #[arg(help_heading = WHICH, long, value_name = "FILE")]
    pub(super) list: Option<PathBuf>,
    /// Run all programs of this Debian package; may be repeated
    #[arg(help_heading = WHICH, long, value_name = "NAME")]
    pub(super) package: Vec<String>,
    /// Skip utilities that are not installed on this machine
    #[arg(help_heading = WHICH, long)]
    pub(super) installed: bool,
    /// Also run all other programs of installed packages, even if they are in no list
    #[arg(help_heading = WHICH, long)]
    pub(super) unlisted: bool,
    /// Skip this utility; may be repeated
    #[arg(help_heading = WHICH, long, value_name = "UTILITY")]
    pub(super) skip: Vec<String>,
    /// Run this utility although it is on the list of those that could do harm; may be repeated
    #[arg(help_heading = WHICH, long, value_name = "UTILITY")]
    pub(super) allow: Vec<String>,
    /// Run only utilities that get their input through this channel; may be repeated
    #[arg(help_heading = WHICH, long, value_name = "CHANNEL", value_parser = ["stdin", "file", "cp", "two_files", "pty"])]
    pub(super) channel: Vec<String>,
    /// Run part K of N equal parts of the list; `ddfuzz merge` joins their results
    #[arg(help_heading = WHICH, long, value_name = "K/N", value_parser = Shard::from_str)]
    pub(super) shard: Option<Shard>,
    /// Use the inputs of a data set of the studies instead of a mixture: issta, or small1 to huge3
    #[arg(help_heading = WHICH, long, value_name = "NAME", value_parser = Preset::from_str)]
    pub(super) preset: Option<Preset>,
    /// Only list what would be run and what would not
    #[arg(help_heading = WHICH, long)]
    pub(super) dry_run: bool,
    /// Output directory
    #[arg(short, long, value_name = "DIR", default_value = "ddfuzz-out")]
    pub(super) out: PathBuf,
    /// Fuzz for this long, shared by all utilities
    #[arg(long, value_parser = values::time)]
    pub(super) time: Option<Duration>,
    /// Stop after this long in all, fuzzing and minimization; --resume continues
    #[arg(long, value_name = "TIME", value_parser = values::time)]
    pub(super) total_time: Option<Duration>,
    /// Make this many runs, shared by all utilities [default: 1200 of each, as the small data sets
    /// of the study of 2020, unless --time is given]
    #[arg(long, value_name = "N")]
    pub(super) runs: Option<u64>,
    /// Number of workers [default: the number of processors]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1024))]
    pub(super) jobs: Option<u32>,
    /// Random seed [default: from the clock]
    #[arg(long, value_name = "N")]
    pub(super) seed: Option<u64>,
    /// Maximum length of a random input [default: 1M]. Does not hold for the inputs of a --preset;
    /// at a terminal at most 300 keys are typed
    #[arg(long, value_name = "SIZE", value_parser = values::size)]
    pub(super) max_len: Option<u64>,
    /// Limit on the CPU time of one run and of all processes that it starts [default: 1s]
    #[arg(long, value_name = "TIME", value_parser = values::time_limit)]
    pub(super) timeout: Option<Duration>,
    /// Limit on the memory of one run, at least 1M [default: 1G]
    #[arg(long, value_name = "SIZE", value_parser = values::memory_limit)]
    pub(super) memory: Option<u64>,
    #[command(flatten)]
    pub(super) shrink: MinimizationArgs,
    /// How often each reproducer is run again, to see how often it fails
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub(super) replays: u32,
    /// File of known groups, one a line: 12 or more hex digits of a major key, or stable:HEX. Their
    /// crashes are stored but not minimized, and do not count for the exit code
    #[arg(hide_short_help = true, long, value_name = "FILE")]
    pub(super) known: Option<PathBuf>,
    /// Continue the study in the output directory, with its --seed, --list, --preset, --shard,
    /// --channel, --freeze-start, --max-len and utilities, which need not be given again
    #[arg(long)]
    pub(super) resume: bool,
    /// Let runs of a utility that share a process also share the random numbers, the times and the
    /// process id that it reads before its input, as interpreters do: many times faster for these.
    /// Crashes are still checked in new processes
    #[arg(hide_short_help = true, long)]
    pub(super) freeze_start: bool,
    /// Run the fuzzed utilities without the sandbox; an error unless it is given twice
    #[arg(hide_short_help = true, long, action = clap::ArgAction::Count)]
    pub(super) no_sandbox: u8,
    #[command(flatten)]
    pub(super) compare: CompareArgs,
    #[command(flatten)]
    pub(super) reports: StudyReportArgs,
}

/// One part of the list of utilities, the system programs to fuzz (`--shard K/N`): every N-th
/// utility, starting at the K-th.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Shard {
    /// Number (`K`, from 1) of this part among all parts of the list of utilities (system
    /// programs).
    pub(super) part: u32,
    /// Number (`N`) of parts into which the list of utilities (system programs to fuzz) is divided.
    pub(super) of: u32,
}

impl Shard {
    /// Returns true if this part of the study (`--shard`) runs the utility at position `place` of
    /// the list (from 0): the first of five parts runs the first utility, the sixth, and so on.
    pub(super) fn has(self, place: u64) -> bool {
        place % u64::from(self.of) == u64::from(self.part - 1)
    }
}

impl FromStr for Shard {
    type Err = String;

    fn from_str(text: &str) -> Result<Shard, String> {
        let numbers = text
            .split_once('/')
            .and_then(|(part, of)| Some((part.parse().ok()?, of.parse().ok()?)));
        match numbers {
            Some((part, of)) if (1..=of).contains(&part) => Ok(Shard { part, of }),
            _ => Err("write a part like 2/5, for the second of five".to_owned()),
        }
    }
}

impl RevisitArgs {
    /// Returns these options, in which `--max-len`, `--list`, `--preset`, `--shard`, `--channel`
    /// and `--freeze-start` have the values of the study that `--resume` continues. Fails if the
    /// user gave one of them another value. The utilities are those of the study's last call,
    /// unless the user gave others.
    pub(super) fn resumed(mut self) -> Result<RevisitArgs, Failure> {
        // What is wrong with the directory is said when it is opened to be written.
        let so_far = match self.resume {
            true => Reader::open(&self.out).ok(),
            false => None,
        };
        let Some(was) = so_far.and_then(|reader| StudyRequest::so_far(&reader)) else {
            return Ok(self);
        };
        if let Some(now) = self.max_len.filter(|now| *now != was.max_len) {
            let was = was.max_len;
            return Err(CampaignError::OtherLengths { was, now }.into());
        }
        self.max_len = Some(was.max_len);
        let list = was.list.map(|list| list.0.into());
        self.list = self.same("--list", self.list.clone(), list)?;
        let preset = was.preset.and_then(|preset| preset.parse().ok());
        self.preset = self.same("--preset", self.preset, preset)?;
        let shard = was.shard.map(|(part, of)| Shard { part, of });
        self.shard = self.same("--shard", self.shard, shard)?;
        let some = |channels: Vec<String>| (!channels.is_empty()).then_some(channels);
        let channels = self.same("--channel", some(self.channels()), some(was.channels))?;
        self.channel = channels.unwrap_or_default();
        if let Some(was) = was.utilities {
            let requested = self.requested().or(was);
            self.request(requested);
        }
        let [now, was] = [self.freeze_start, was.freeze_start].map(|it| it.then_some(()));
        self.freeze_start = self.same("--freeze-start", now, was)?.is_some();
        Ok(self)
    }

    /// Returns the selection of utilities (system programs to fuzz) that these options make.
    pub(super) fn requested(&self) -> RequestedUtilities {
        RequestedUtilities {
            names: self.utilities.clone(),
            packages: self.package.clone(),
            unlisted: self.unlisted,
            installed: self.installed,
            skip: self.skip.clone(),
            allow: self.allow.clone(),
        }
    }

    /// Sets the options that select utilities (system programs to fuzz) to the values in
    /// `requested`.
    fn request(&mut self, requested: RequestedUtilities) {
        self.utilities = requested.names;
        self.package = requested.packages;
        self.unlisted = requested.unlisted;
        self.installed = requested.installed;
        self.skip = requested.skip;
        self.allow = requested.allow;
    }

    /// Returns the values of `--channel` (how utilities, the fuzzed system programs, get their
    /// input), sorted and without duplicates.
    pub(super) fn channels(&self) -> Vec<String> {
        let mut channels = self.channel.clone();
        channels.sort();
        channels.dedup();
        channels
    }

    /// Returns `was`, the value that the option called `option` has in the study that `--resume`
    /// continues; `None` if it has no value there. Fails if the user now gives another value,
    /// `now`.
    fn same<T: PartialEq>(
        &self,
        option: &str,
        now: Option<T>,
        was: Option<T>,
    ) -> Result<Option<T>, Failure> {
        if now.is_none() || now == was {
            return Ok(was);
        }
        let had = match was {
            Some(_) => format!("another {option}"),
            None => format!("no {option}"),
        };
        let message = format!(
            "{} cannot be resumed: its study has {had}",
            self.out.display()
        );
        Err(Failure::usage(message).path(&self.out).hint(format!(
            "omit {option} to continue the study, or omit --resume to start a new one there"
        )))
    }
}
