//! How fast a way is: measured by a campaign, so that it is the figure that `run` will give.

use std::sync::Mutex;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use super::Args;
use crate::campaign::{
    self, Deadline, Generator, Minimizing, Monitoring, Network, Progress, Screen, Seeds, Settings,
    Share, Variants, When, Words,
};
use crate::cli::run::{campaign_of, processors};
use crate::cli::target::probe_by;
use crate::cli::{Exit, Failure};
use crate::exec::{ExecError, Target, Way};
use crate::report::GroupView;
use crate::store::{KnownGroups, Store};

/// Inputs differ in size by a factor of a thousand: with one seed for all ways, the same inputs
/// make the difference between them one of the ways.
const SEED: u64 = 1;

/// The part of the time that a campaign has beforehand, to start its servers and name the crashes
/// that are new: of a long one that is next to nothing.
const WARM_UP: u32 = 4;
/// Fewer runs between two commits tell nothing.
const FEWEST: u64 = 64;

/// Runs a campaign on `target` by `way`, and gives its runs per second. Its output directory is
/// removed at the end.
pub(super) fn measure(
    args: &Args,
    target: &Target,
    way: Way,
    stop: &AtomicBool,
) -> Result<f64, Failure> {
    // Where it does not work this says why in fewer words than a campaign, and it keeps what is
    // unpacked for the workers.
    let _kept = probe_by(target, Some(way)).map_err(|error| match error {
        // Which way and which program is said beside it.
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
    let warm_up = args.time / WARM_UP;
    let settings = Settings {
        network: Network::default(),
        monitoring: Monitoring::default(),
        seed: SEED,
        max_len: args.max_len,
        seeds: Seeds::default(),
        words: Words::default(),
        runs: None,
        time: Some(warm_up.saturating_add(args.time)),
        deadline: Deadline::default(),
        until: Vec::new(),
        generator: Generator::Classic,
        share: Share::DEFAULT,
        jobs: args.jobs.map_or_else(processors, |jobs| jobs as usize),
        when: When::Off,
        minimizing: Minimizing {
            target: target.clone(),
            way,
            search: "full".to_owned(),
            budget_time: None,
            budget_tests: None,
            log_inputs: false,
            no_cache: false,
            seed: Some(SEED),
            learn_limit: false,
            variants: Variants::None,
            hurried: false,
            jobs: 1,
        },
        known: KnownGroups::default(),
    };
    let mut pace = Pace::new(warm_up);
    let summary = campaign::run(&store, &id, &settings, &mut pace, stop)?;
    Ok(pace.rate().unwrap_or_else(|| summary.runs_per_s()))
}

/// How fast a campaign goes once it is under way: from one commit to another, since what is under
/// way at its end is dropped.
struct Pace {
    warm_up: Duration,
    first: Option<Progress>,
    last: Progress,
}

impl Pace {
    fn new(warm_up: Duration) -> Pace {
        Pace {
            warm_up,
            first: None,
            last: Progress::default(),
        }
    }

    /// Runs per second; `None` if there were too few of them.
    fn rate(&self) -> Option<f64> {
        let first = self.first?;
        let (runs, time_ms) = (
            self.last.runs - first.runs,
            self.last.time_ms - first.time_ms,
        );
        (runs >= FEWEST && time_ms > 0).then(|| runs as f64 * 1000.0 / time_ms as f64)
    }
}

impl Screen for Pace {
    fn progress(&mut self, progress: &Progress) {
        if progress.runs == self.last.runs {
            return; // nothing was committed
        }
        self.last = *progress;
        if self.first.is_none() && u128::from(progress.time_ms) >= self.warm_up.as_millis() {
            self.first = Some(*progress);
        }
    }

    fn minimized(&mut self, _: &GroupView) {}

    fn note(&mut self, _: &str) {}
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The rate of a campaign with a warm-up of a second that shows these times and runs.
    fn rate(course: &[(u64, u64)]) -> Option<f64> {
        let mut pace = Pace::new(Duration::from_secs(1));
        for &(time_ms, runs) in course {
            pace.progress(&Progress {
                time_ms,
                runs,
                ..Progress::default()
            });
        }
        pace.rate()
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
}
