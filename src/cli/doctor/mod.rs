//! `ddfuzz doctor`: checks what this machine and a target support, and how fast the target runs.
//! The rate of each way of execution is measured by a short campaign, like that of `run`.

pub mod refusals;
mod target_checks;

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde::Serialize;

use self::refusals::Refusals;
use super::behaviour::Behaviour;
use super::run::{campaign_of, workers};
use super::target::{TargetArgs, probe_by};
use super::{Exit, Failure, Output, behaviour, signals, ui, values};
use crate::campaign::{
    self, Deadline, Generator, Minimizing, Monitoring, Network, Progress, Screen, SeedSources,
    Seeds, Settings, Share, When, Words,
};
use crate::exec::facts::TargetFacts;
use crate::exec::machine::{About, Check};
use crate::exec::{ExecError, Freshness, Target, Way, machine, start};
use crate::report::text::printable;
use crate::report::{GroupView, size};
use crate::store::{KnownGroups, Store};

/// Check this machine and a program: how the program can be executed, and how fast
///
/// Without a program only the machine is checked. With one, a short campaign measures each way of
/// execution; its results are not stored.
#[derive(clap::Args)]
#[command(
    after_help = "Example:\n  ddfuzz doctor\n  ddfuzz doctor --target ul\n  \
                        ddfuzz doctor --json -- /usr/bin/file @@\n\n\
                        Exit codes: 0 the program can be run (or none was given); 2 wrong \
                        usage; 3 the program cannot be run in any way"
)]
pub struct DoctorArgs {
    #[command(flatten)]
    target: TargetArgs,
    /// Measure each way of execution for this long; five times as long if the program makes fewer
    /// than 64 runs in that time
    #[arg(long, value_name = "TIME", value_parser = values::time_limit, default_value = "2s")]
    time: Duration,
    /// Number of workers [default: the number of processors]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1024))]
    jobs: Option<u32>,
    /// Maximum length of an input [default: 1M]
    #[arg(long, value_name = "SIZE", value_parser = values::size)]
    max_len: Option<u64>,
}

/// The result of trying one way of execution (such as a fork server) with the target.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct WayReport {
    pub way: Way,
    /// Whether the target can be run by this way of execution.
    pub works: bool,
    /// Why the target cannot be run by this way of execution; `None` if it can.
    pub why_not: Option<String>,
    /// Advice on what would make this way of execution work; `None` if it works or no advice is
    /// known.
    pub fix: Option<String>,
    /// Runs per second of a short campaign by this way of execution, of all workers together;
    /// `None` if the way does not work.
    pub runs_per_s: Option<f64>,
    /// Number of runs from which `runs_per_s` is computed; `None` if the way does not work. Run
    /// times of different inputs differ, so that the rate of few runs says little.
    pub measured_runs: Option<u64>,
    /// Number of runs of the measuring campaign that reached the time limit, including those of its
    /// warm-up; `None` if the way does not work.
    pub measured_hangs: Option<u64>,
    /// For the way `snapshot`, which makes many runs in one process: how many runs could not be
    /// made in this process, and why. `None` for all other ways, and if `snapshot` does not work.
    pub refusals: Option<Refusals>,
}

#[derive(Clone, Debug, Default, Serialize)]
pub struct Report {
    /// Results of all ways of execution that were tried, in the order of [`Way::REAL`]; empty
    /// without a target.
    pub ways: Vec<WayReport>,
    /// Way of execution that `ddfuzz run` would choose for the target; `None` if none works.
    pub chosen: Option<Way>,
    /// Why `ddfuzz run` would choose the way of execution in `chosen`; `None` if none works.
    pub why: Option<String>,
    /// Facts read from the target's program file; `None` without a target.
    pub target: Option<TargetFacts>,
    /// Behaviour of the target in two trial runs; `None` if it cannot be run.
    pub behaviour: Option<Behaviour>,
    /// Results of the checks of `ddfuzz doctor`: those of the machine, followed by those of the
    /// target.
    pub checks: Vec<Check>,
}

pub fn run(args: DoctorArgs, output: &Output) -> Result<Exit, Failure> {
    let mut report = Report::default();
    let mut exit = Exit::Done;
    let named = args.target.is_named();
    let target = named.then(|| args.target.target()).transpose()?;
    let stop = signals::stop_flag()?;
    let target = target.map(|target| target.abandoned_when(signals::abandon_at(&stop)));
    report.checks = machine::checks();
    if let Some(target) = &target {
        examine(&args, target, &stop, output, &mut report)?;
        if stop.load(Ordering::Relaxed) {
            return Err(Failure::interrupted());
        }
        if report.chosen.is_none() {
            exit = Exit::Baseline;
        }
    }
    output.result(&report_text(&report), &report);
    Ok(exit)
}

/// Checks the target, measures its runs per second with each way of execution, and stores the
/// results in `report`.
fn examine(
    args: &DoctorArgs,
    target: &Target,
    stop: &AtomicBool,
    output: &Output,
    report: &mut Report,
) -> Result<(), Failure> {
    let facts = TargetFacts::of(target)?;
    args.target.warn_of_surroundings(target, output);
    for way in Way::REAL {
        let asked = args.target.asked_way();
        if asked.is_some_and(|asked| asked != way) || stop.load(Ordering::Relaxed) {
            continue;
        }
        output.detail(&format!("trying {way}"));
        // Before the measurement, because the process that makes many runs is given up after many
        // refusals.
        let refusals = match way {
            Way::Snapshot => refusals::survey(target, SEED, args.time, stop).ok(),
            _ => None,
        };
        let measured = measure_rate(args, target, way, stop);
        let tried = way_report(way, measured, &facts);
        report.ways.push(WayReport {
            refusals: refusals.filter(|_| tried.works),
            ..tried
        });
    }
    if stop.load(Ordering::Relaxed) {
        return Ok(());
    }
    let chosen = start(target, args.target.asked_way(), Freshness::Shared);
    // A way that starts may still not run: the report on that way says why.
    let works = |way: Way| report.ways.iter().any(|one| one.way == way && one.works);
    if let Ok(mut started) = chosen
        && works(started.executor.way())
    {
        report.chosen = Some(started.executor.way());
        report.why = Some(started.why);
        report.behaviour = Some(behaviour::observe(started.executor.as_mut(), target));
    }
    let unseen = Behaviour::default();
    let behaviour = report.behaviour.as_ref().unwrap_or(&unseen);
    let checks = target_checks::checks(target, &facts, behaviour);
    report.checks.extend(checks);
    report.target = Some(facts);
    Ok(())
}

fn way_report(way: Way, measured: Result<MeasuredRate, Failure>, facts: &TargetFacts) -> WayReport {
    let (measured, why_not) = match measured {
        Ok(measured) => (Some(measured), None),
        Err(failure) => (None, Some(failure.message().to_owned())),
    };
    WayReport {
        way,
        works: why_not.is_none(),
        fix: why_not
            .is_some()
            .then(|| target_checks::advice_for(way, facts))
            .flatten(),
        why_not,
        runs_per_s: measured.map(|measured| measured.runs_per_s),
        measured_runs: measured.map(|measured| measured.runs),
        measured_hangs: measured.map(|measured| measured.hangs),
        refusals: None,
    }
}

/// Random seed of all measurements: input sizes vary by a factor of a thousand, so all ways of
/// execution get the same inputs.
const SEED: u64 = 1;

/// The warm-up before a measurement takes the measuring time divided by this number. During the
/// warm-up, servers start and new crashes are analysed.
const WARM_UP_DIVISOR: u32 = 4;
/// Minimum number of measured runs from which the runs per second are computed. Fewer would give a
/// wrong rate: a campaign counts its runs in order and 16 at once, so during one slow run the runs
/// of other workers are not counted.
const MIN_MEASURED_RUNS: u64 = 64;
/// Maximum duration of a measurement with too few runs, as a multiple of the measuring time.
const MAX_TIME_FACTOR: u32 = 5;

/// Runs per second of a way of execution, the number of runs from which this rate is computed, and
/// the number of runs of the whole campaign that reached the time limit.
#[derive(Clone, Copy, Debug, PartialEq)]
struct MeasuredRate {
    runs_per_s: f64,
    runs: u64,
    hangs: u64,
}

/// Returns true if at least two of `runs` runs, and at least half of them, reached the time limit
/// (`hangs` did). The rate then follows from the time limit, and measuring longer would not change
/// it.
fn mostly_hang(hangs: u64, runs: u64) -> bool {
    hangs >= 2 && 2 * hangs >= runs
}

/// Measures the runs per second of the target by the way of execution `way`: runs a campaign with a
/// temporary output directory, and counts its runs after a warm-up. If there are too few of these,
/// returns the rate of the whole campaign. Fails if this way of execution does not work for the
/// target.
fn measure_rate(
    args: &DoctorArgs,
    target: &Target,
    way: Way,
    stop: &AtomicBool,
) -> Result<MeasuredRate, Failure> {
    // If the way does not work, this error is shorter than that of a campaign. The started target
    // is kept, because the workers use the files that it has unpacked.
    let _kept = probe_by(target, Some(way)).map_err(|error| match error {
        // The report names the way and the program beside this reason.
        ExecError::WayUnfit { why, .. } => Failure::new(Exit::Baseline, "way-unfit", why),
        error => error.into(),
    })?;
    let out = tempfile::Builder::new()
        .prefix("ddfuzz-doctor-")
        .tempdir()
        .map_err(|error| Failure::file(&std::env::temp_dir(), "making a directory in", &error))?;
    let campaign = campaign_of(target, way, Some(SEED));
    let id = campaign.id.clone();
    let store = Mutex::new(Store::create_or_resume(&out.path().join("out"), campaign)?);
    let mut pace = RateMeter::new(args.time, stop);
    let over = Arc::clone(&pace.is_over);
    let settings = measuring(args, target, way);
    let summary = campaign::run(&store, &id, &settings, &mut pace, &over)?;
    // On a busy machine no run may end between two reports.
    let measured = pace.rate().filter(|measured| measured.runs_per_s > 0.0);
    Ok(measured.unwrap_or_else(|| MeasuredRate {
        runs_per_s: summary.runs_per_s(),
        runs: summary.runs_of_call,
        hangs: pace.last.hangs,
    }))
}

/// Returns the settings of the campaign that measures the runs per second of a way of execution.
fn measuring(args: &DoctorArgs, target: &Target, way: Way) -> Settings {
    let longest = args.time.saturating_mul(MAX_TIME_FACTOR);
    Settings {
        network: Network::default(),
        monitoring: Monitoring::default(),
        seed: SEED,
        max_len: args.max_len,
        seeds: Seeds::default(),
        seed_sources: SeedSources::default(),
        words: Words::default(),
        runs: None,
        time: Some(longest.saturating_add(args.time / WARM_UP_DIVISOR)),
        deadline: Deadline::default(),
        until: Vec::new(),
        generator: Generator::Classic,
        mutated_structure: None,
        share: Share::DEFAULT,
        jobs: workers(args.jobs),
        when: When::Off,
        minimizing: Minimizing {
            seed: Some(SEED),
            learn_limit: false,
            ..Minimizing::of_target(target.clone(), way, "full")
        },
        known: KnownGroups::default(),
    }
}

/// Measures the runs per second of a campaign from its progress reports: from the first one after a
/// warm-up to the last one, so that runs in progress at the end are not counted. Ends the campaign
/// when the measuring time is over and enough runs were made.
struct RateMeter<'a> {
    warm_up: Duration,
    /// How long the campaign is measured after its warm-up.
    time: Duration,
    first: Option<Progress>,
    last: Progress,
    /// Flag that ends the campaign when it turns true.
    is_over: Arc<AtomicBool>,
    /// Flag that turns true when the user stops ddfuzz.
    stop: &'a AtomicBool,
}

impl RateMeter<'_> {
    /// Makes a meter for the measuring time `time`; `stop` turns true when the user stops ddfuzz.
    fn new(time: Duration, stop: &AtomicBool) -> RateMeter<'_> {
        RateMeter {
            warm_up: time / WARM_UP_DIVISOR,
            time,
            first: None,
            last: Progress::default(),
            is_over: Arc::default(),
            stop,
        }
    }

    /// Returns the campaign's runs per second after the warm-up; `None` if there were too few runs.
    fn rate(&self) -> Option<MeasuredRate> {
        let first = self.first?;
        let (runs, time_ms) = (
            self.last.runs - first.runs,
            self.last.time_ms - first.time_ms,
        );
        (runs >= MIN_MEASURED_RUNS && time_ms > 0).then(|| MeasuredRate {
            runs_per_s: runs as f64 * 1000.0 / time_ms as f64,
            runs,
            hangs: self.last.hangs,
        })
    }
}

impl Screen for RateMeter<'_> {
    fn progress(&mut self, progress: &Progress) {
        if progress.runs != self.last.runs {
            self.last = *progress;
            let is_warm = u128::from(progress.time_ms) >= self.warm_up.as_millis();
            if self.first.is_none() && is_warm {
                self.first = Some(*progress);
            }
        }
        let end = self.warm_up.saturating_add(self.time).as_millis();
        let is_measured = self.rate().is_some() || mostly_hang(self.last.hangs, self.last.runs);
        let is_enough = u128::from(progress.time_ms) >= end && is_measured;
        if is_enough || self.stop.load(Ordering::Relaxed) {
            self.is_over.store(true, Ordering::Relaxed);
        }
    }

    fn minimized(&mut self, _: &GroupView) {}

    fn note(&mut self, _: &str) {}
}

fn report_text(report: &Report) -> String {
    let mut text = String::from("This machine\n");
    let width = report.checks.iter().map(|check| check.name.len()).max();
    let width = width.unwrap_or_default();
    let of = |about| {
        report
            .checks
            .iter()
            .filter(move |check| check.about == about)
    };
    of(About::Machine).for_each(|check| text.push_str(&check_line(check, width)));
    let Some(facts) = &report.target else {
        text.push_str(
            "\nTo check a program, too, give it after `--`, or a target that comes with ddfuzz by \
             --target.\n",
        );
        return text;
    };
    let program = match &facts.bundled {
        Some(name) => format!("The bundled target {name}"),
        None => printable(&facts.program.to_string_lossy()),
    };
    text.push_str(&format!("\n{program}\n"));
    of(About::Target).for_each(|check| text.push_str(&check_line(check, width)));
    text.push_str("\nWays of execution (--exec), by a short campaign\n");
    for way in &report.ways {
        text.push_str(&way_line(way));
    }
    match (&report.chosen, &report.why) {
        (Some(way), Some(why)) => text.push_str(&format!("\nchosen: {way} ({})\n", printable(why))),
        _ => text.push_str("\nno way of execution works\n"),
    }
    text
}

fn check_line(check: &Check, width: usize) -> String {
    let mark = if check.ok { "ok" } else { "--" };
    let (name, detail) = (check.name, printable(&check.detail));
    let mut line = format!("  {mark}  {name:<width$}  {detail}\n");
    if let Some(fix) = &check.fix {
        line.push_str(&format!("      {:<width$}  fix: {}\n", "", printable(fix)));
    }
    line
}

fn way_line(way: &WayReport) -> String {
    let name = way.way.name();
    if let Some(rate) = way.runs_per_s {
        let mut line = format!("  ok  {name:<10}  {:>9} runs/s", ui::rate(rate));
        if let Some(runs) = way.measured_runs.filter(|runs| *runs < MIN_MEASURED_RUNS) {
            let hangs = way.measured_hangs.unwrap_or_default();
            let advice = match mostly_hang(hangs, runs) {
                true => format!("{hangs} reached the time limit: --timeout sets a shorter one"),
                false => "--time measures longer".to_owned(),
            };
            let runs = size::counted(runs, "run");
            line.push_str(&format!(" (of {runs} only: {advice})"));
        }
        if let Some(refusals) = &way.refusals {
            line.push_str(&format!(", {}", refusals.text()));
        }
        return line + "\n";
    }
    let why = printable(way.why_not.as_deref().unwrap_or_default());
    let mut line = format!("  --  {name:<10}  {why}\n");
    if let Some(fix) = &way.fix {
        line.push_str(&format!("      {:<10}  fix: {}\n", "", printable(fix)));
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Feeds the progress reports `course` (time in ms, runs so far) to a meter that measures for
    /// four seconds after a warm-up of one second. Returns the measured runs per second, and true
    /// if the meter says that it has measured long enough.
    fn measured(course: &[(u64, u64)]) -> (Option<f64>, bool) {
        let stop = AtomicBool::new(false);
        let mut pace = RateMeter::new(Duration::from_secs(4), &stop);
        for &(time_ms, runs) in course {
            pace.progress(&Progress {
                time_ms,
                runs,
                ..Progress::default()
            });
        }
        let rate = pace.rate().map(|measured| measured.runs_per_s);
        (rate, pace.is_over.load(Ordering::Relaxed))
    }

    fn rate(course: &[(u64, u64)]) -> Option<f64> {
        measured(course).0
    }

    #[test]
    fn the_rate_is_that_between_the_first_commit_behind_the_warm_up_and_the_last() {
        let course = [(900, 10), (1000, 10), (1500, 110), (2500, 410), (3000, 410)];
        assert_eq!(rate(&course), Some(300.0));
    }

    #[test]
    fn too_few_runs_have_no_rate_between_commits() {
        assert_eq!(rate(&[]), None);
        assert_eq!(rate(&[(1500, 16), (2500, 32)]), None);
    }

    #[test]
    fn slow_programs_are_measured_until_there_are_enough_runs() {
        let slow = [(1000, 1), (5200, 33), (8000, 33)];
        assert_eq!(measured(&slow), (None, false));
        assert_eq!(
            measured(&[&slow[..], &[(9000, 65)]].concat()),
            (Some(8.0), true)
        );
        let fast = [(1000, 100), (4800, 1000)];
        assert!(!measured(&fast).1);
        assert!(measured(&[&fast[..], &[(5000, 1000)]].concat()).1);
    }

    #[test]
    fn a_rate_of_few_runs_says_of_how_many() {
        let of = |runs, hangs| {
            way_line(&WayReport {
                way: Way::Command,
                works: true,
                why_not: None,
                fix: None,
                runs_per_s: Some(0.4),
                measured_runs: Some(runs),
                measured_hangs: Some(hangs),
                refusals: None,
            })
        };
        let longer = "0.4 runs/s (of 1 run only: --time measures longer)\n";
        assert!(of(1, 0).ends_with(longer), "{}", of(1, 0));
        let hanging = "(of 5 runs only: 4 reached the time limit: --timeout sets a shorter one)\n";
        assert!(of(5, 4).ends_with(hanging), "{}", of(5, 4));
        assert!(of(64, 64).ends_with("0.4 runs/s\n"));
    }

    #[test]
    fn programs_that_hang_in_every_second_run_are_not_measured_longer() {
        let stop = AtomicBool::new(false);
        let mut pace = RateMeter::new(Duration::from_secs(4), &stop);
        for (time_ms, runs, hangs) in [(1000, 2, 1), (5200, 5, 2), (6000, 6, 3)] {
            pace.progress(&Progress {
                time_ms,
                runs,
                hangs,
                ..Progress::default()
            });
            assert_eq!(pace.is_over.load(Ordering::Relaxed), hangs == 3);
        }
    }
}
