//! `ddfuzz doctor`: what this machine and a target allow, how the target is run, and how fast.

mod advice;
mod rate;
mod target_checks;
mod text;

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use serde::Serialize;

use super::behaviour::{self, Behaviour};
use super::target::TargetArgs;
use super::{Exit, Failure, Output, amounts, signals};
use crate::exec::facts::TargetFacts;
use crate::exec::machine::{self, Check};
use crate::exec::{Freshness, Target, Way, start};

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
pub struct Args {
    #[command(flatten)]
    target: TargetArgs,
    /// Measure each way of execution for this long
    #[arg(long, value_name = "TIME", value_parser = amounts::time_limit, default_value = "2s")]
    time: Duration,
    /// Number of workers [default: the number of processors]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1024))]
    jobs: Option<u32>,
    /// Maximum length of an input [default: 1M]
    #[arg(long, value_name = "SIZE", value_parser = amounts::size)]
    max_len: Option<u64>,
}

/// How a way of execution does with a target.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct WayReport {
    /// The way.
    pub way: Way,
    /// Whether it runs the target.
    pub works: bool,
    /// Why not.
    pub why_not: Option<String>,
    /// What would make it work, as far as that is known.
    pub fix: Option<String>,
    /// Runs per second of a campaign, by all its workers together.
    pub runs_per_s: Option<f64>,
}

/// The result of the command.
#[derive(Clone, Debug, Serialize)]
pub struct Report {
    /// Each way tried, from the plainest on; none without a target.
    pub ways: Vec<WayReport>,
    /// The way that `run` would take.
    pub chosen: Option<Way>,
    /// Why that one.
    pub why: Option<String>,
    /// What was read off the program.
    pub target: Option<TargetFacts>,
    /// What was seen when it ran.
    pub behaviour: Option<Behaviour>,
    /// Of the machine first, then of the target.
    pub checks: Vec<Check>,
}

/// Runs the command.
pub fn run(args: Args, output: &Output) -> Result<Exit, Failure> {
    let mut report = Report {
        ways: Vec::new(),
        chosen: None,
        why: None,
        target: None,
        behaviour: None,
        checks: Vec::new(),
    };
    let mut exit = Exit::Done;
    let target = match args.target.is_named() {
        true => Some(args.target.target()?),
        false => None,
    };
    let stop = signals::stop_flag()?;
    report.checks = machine::checks();
    if let Some(target) = &target {
        examine(&args, target, &stop, output, &mut report)?;
        if stop.load(Ordering::Relaxed) {
            return Err(Failure::new(
                Exit::Interrupted,
                "interrupted",
                "interrupted",
            ));
        }
        if report.chosen.is_none() {
            exit = Exit::Baseline;
        }
    }
    output.result(&text::text(&report), &report);
    Ok(exit)
}

/// Finds out about a target, and runs it in each way.
fn examine(
    args: &Args,
    target: &Target,
    stop: &AtomicBool,
    output: &Output,
    report: &mut Report,
) -> Result<(), Failure> {
    let facts = TargetFacts::of(target)?;
    args.target.warn_of_relative(target, output);
    for way in Way::REAL {
        let asked = args.target.asked_way();
        if asked.is_some_and(|asked| asked != way) || stop.load(Ordering::Relaxed) {
            continue;
        }
        output.detail(&format!("trying {way}"));
        let measured = rate::measure(args, target, way, stop);
        report.ways.push(way_report(way, measured, &facts));
    }
    let chosen = start(target, args.target.asked_way(), Freshness::Shared);
    // A way that starts may still not run: what `run` says then was said of the way above.
    let works = |way: Way| report.ways.iter().any(|one| one.way == way && one.works);
    if let Ok(mut started) = chosen
        && works(started.executor.way())
    {
        report.chosen = Some(started.executor.way());
        report.why = Some(started.why);
        let behaviour = behaviour::observe(started.executor.as_mut(), target);
        report
            .checks
            .extend(target_checks::checks(target, &facts, &behaviour));
        report.behaviour = Some(behaviour);
    } else {
        let unseen = Behaviour::default();
        report
            .checks
            .extend(target_checks::checks(target, &facts, &unseen));
    }
    report.target = Some(facts);
    Ok(())
}

fn way_report(way: Way, measured: Result<f64, Failure>, facts: &TargetFacts) -> WayReport {
    let (runs_per_s, why_not) = match measured {
        Ok(rate) => (Some(rate), None),
        Err(failure) => (None, Some(failure.message().to_owned())),
    };
    WayReport {
        way,
        works: why_not.is_none(),
        fix: why_not.is_some().then(|| advice::of(way, facts)).flatten(),
        why_not,
        runs_per_s,
    }
}
