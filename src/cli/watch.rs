//! `ddfuzz watch`: groups and minimizes the crash files of another fuzzer while that fuzzer runs.
//! `cargo ddfuzz run --engine libfuzzer` uses the same job.

use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use super::campaign_args::{MinimizationArgs, read_known_and_against};
use super::report::HtmlArgs;
use super::reports::{ReportArgs, target_name};
use super::run::{CampaignReport, GroupsBefore, StartUp, StoreRequest, open_store, report, screen};
use super::target::TargetArgs;
use super::ui::campaign::Heading;
use super::{Exit, Failure, Output, signals, values};
use crate::campaign::watch::{Others, Producer, Producing, WatchSettings, watch};
use crate::campaign::{Deadline, Until};
use crate::exec::{Started, Target, Way};
use crate::report::text::printable;

/// Default of `--max-len` of `ddfuzz watch`, in bytes: larger files are not run.
const MAX_LEN: u64 = 256 << 20;

/// Group and minimize the crash files of another fuzzer while it runs
///
/// Directories of libFuzzer, cargo-fuzz, AFL++, honggfuzz and ddfuzz are recognised, and only
/// their crash files are run; of any other directory all files are, except hidden ones. The files
/// are only read.
#[derive(clap::Args)]
#[command(after_help = "Example:\n  ddfuzz watch afl-out -- ./program @@\n  \
                  ddfuzz watch fuzz/artifacts/parse --until 'no new for 1h' -- ./parse\n  \
                  ddfuzz watch honggfuzz-workspace --once -o groups -- ./program @@")]
pub struct WatchArgs {
    /// Directories into which the fuzzer writes crash files, or single files; they may appear later
    #[arg(required = true, value_name = "DIR")]
    dirs: Vec<PathBuf>,
    #[command(flatten)]
    target: TargetArgs,
    /// Output directory
    #[arg(short, long, value_name = "DIR", default_value = "ddfuzz-out")]
    out: PathBuf,
    /// Watch for this long [default: until Ctrl-C]
    #[arg(long, value_parser = values::time)]
    time: Option<Duration>,
    /// Stop after this long in all, watching and minimization. Without --time, three quarters of it
    /// are for watching. --resume continues
    #[arg(long, value_name = "TIME", value_parser = values::time)]
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
    #[arg(long, value_name = "SIZE", value_parser = values::size)]
    max_len: Option<u64>,
    /// Also look for memory leaks in inputs that do not crash, if the program has LeakSanitizer.
    /// Files named leak-* are always checked for leaks
    #[arg(long)]
    leaks: bool,
    // One worker always does nothing but minimize, so that `inline` and `worker` mean the same.
    #[command(flatten)]
    shrink: MinimizationArgs,
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
    #[command(flatten)]
    html: HtmlArgs,
}

pub fn run(args: WatchArgs, output: &Output) -> Result<Exit, Failure> {
    check_sources(&args)?;
    let output = &args.reports.check(output)?;
    args.html.check(&args.out, &args.reports, output)?;
    args.target.check_given("watch", &args.dirs)?;
    let stop = signals::stop_flag()?;
    let deadline = signals::deadline(args.total_time, &stop)?;
    let target = args
        .target
        .target()?
        .abandoned_when(signals::abandon_at(&stop));
    let start_up = StartUp::begin(None, &stop, &deadline);
    let (started, way) = start_up.start(&args.target, &target, output)?;
    let settings = WatchSettings {
        deadline,
        ..settings(&args, target, way)?
    };
    let dirs: Vec<_> = args.dirs.iter().map(|dir| dir.to_string_lossy()).collect();
    let watched = WatchJob {
        settings: &settings,
        out: &args.out,
        resume: args.resume,
        seed: None,
        engine: format!("watching {}", printable(&dirs.join(", "))),
        unit: "input",
        plain: args.plain,
        reports: &args.reports,
        html: &args.html,
        stop: &stop,
    };
    let producer = Others(match args.once {
        true => Producing::Ended,
        false => Producing::Running,
    });
    watched.run(started, || Ok(producer), output)
}

/// Fails if one of the watched directories is in the output directory. With `--once`, also fails if
/// one does not exist.
fn check_sources(args: &WatchArgs) -> Result<(), Failure> {
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

fn settings(args: &WatchArgs, target: Target, way: Way) -> Result<WatchSettings, Failure> {
    Ok(WatchSettings {
        sources: args.dirs.clone(),
        max_len: args.max_len.unwrap_or(MAX_LEN),
        leaks: args.leaks,
        time: Deadline::fuzzing(args.total_time.filter(|_| !args.once), args.time),
        deadline: Deadline::default(),
        until: args.until.clone(),
        when: args.shrink.when(),
        jobs: args.jobs.map_or(1, |jobs| jobs as usize),
        minimizing: (args.shrink).minimizing(target, way, args.target.timeout.is_none()),
        known: read_known_and_against(args.known.as_deref(), args.against.as_deref())?,
        waits_for_room: true,
    })
}

/// What is needed to watch another fuzzer: how the inputs that it finds are run, grouped and
/// minimized, and where results are stored and shown.
pub struct WatchJob<'a> {
    pub settings: &'a WatchSettings,
    pub out: &'a Path,
    /// Whether the watch continues the campaign in the output directory; if false, a new campaign
    /// begins.
    pub resume: bool,
    pub seed: Option<u64>,
    /// Name of the fuzzer that is watched, as shown on the full screen.
    pub engine: String,
    /// Word by which messages call an execution of the target: `run` or `input`.
    pub unit: &'static str,
    /// Whether the progress of the watch is printed as lines instead of on the full screen.
    pub plain: bool,
    pub reports: &'a ReportArgs,
    /// Option `--html` of the watch: whether, and at which path, an HTML page of the results is
    /// kept current.
    pub html: &'a HtmlArgs,
    /// Flag that turns true when the user stops the watch, or the total time is over.
    pub stop: &'a Arc<AtomicBool>,
}

impl WatchJob<'_> {
    /// Runs, groups and minimizes the inputs of the other fuzzer until it ends or the time is over.
    /// Then prints the result, and returns the exit code. `started`: the target, already started
    /// for a trial run. `start`: starts the other fuzzer; it is called when the output directory is
    /// open.
    pub fn run<P: Producer>(
        self,
        started: Started,
        start: impl FnOnce() -> Result<P, Failure>,
        output: &Output,
    ) -> Result<Exit, Failure> {
        let WatchSettings { minimizing, .. } = self.settings;
        let (target, way) = (&minimizing.target, minimizing.way);
        let asked = StoreRequest {
            out: self.out,
            resume: self.resume,
            seed: self.seed,
        };
        let (store, campaign) = open_store(&asked, target, way)?;
        let before = GroupsBefore::of(&store, self.resume && store.resumed())?;
        let heading = Heading {
            target: target_name(target),
            way: way.to_string(),
            engine: self.engine,
            seed: self.seed,
            out: self.out.to_string_lossy().into_owned(),
        };
        let mut screen = screen(self.plain, self.unit, heading, &store, self.stop, output)?;
        let page = self.html.start_page(self.out);
        let store = Mutex::new(store);
        let mut producer = start()?;
        let (settings, id) = (self.settings, &campaign.id);
        let summary = watch(&store, id, settings, &mut producer, &mut *screen, self.stop);
        let failure = producer.failure().map(Failure::from);
        let fuzzer_warning = producer.warning();
        drop((producer, screen));
        // Dropped only now, because the workers have used the files that it has unpacked.
        drop(started);
        let store = store.into_inner().unwrap_or_else(PoisonError::into_inner);
        let summary = summary?;
        if let Some(page) = page {
            page.finish(output);
        }
        let failure = match failure {
            // Without any crash there is no result to print, only the error.
            Some(failure) if summary.new_groups + summary.known_crashes == 0 => {
                return Err(failure);
            }
            failure => failure.map(|failure| failure.to_string()),
        };
        let told = CampaignReport {
            unit: self.unit,
            inputs_stay: true,
            minimizing,
            known: &settings.known,
            reports: self.reports,
            out: self.out,
            before,
            target_warnings: Vec::new(),
            fuzzer_warnings: fuzzer_warning.into_iter().chain(failure).collect(),
            tells_coverage: false,
        };
        report(&summary, &store, &told, output)
    }
}
