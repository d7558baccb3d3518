//! How fast a way is: measured by a campaign, so that it is the figure that `run` will give.

use std::collections::BTreeSet;
use std::sync::Mutex;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use super::Args;
use crate::campaign::{self, Minimizing, Settings, Silent, When};
use crate::cli::run::{campaign_of, processors};
use crate::cli::target::probe_by;
use crate::cli::{Exit, Failure};
use crate::exec::{ExecError, Target, Way};
use crate::store::Store;

/// Inputs differ in size by a factor of a thousand: with one seed for all ways, the same inputs
/// make the difference between them one of the ways.
const SEED: u64 = 1;

/// The part of the time that finding the count takes.
const SHARE: u32 = 5;
/// How many times as long as asked for it may take, where the first runs were much faster.
const PATIENCE: u32 = 3;
/// Runs that are made however slow they are, within that time.
const FEWEST: u64 = 16;

/// Runs campaigns on `target` by `way`, and gives the runs per second. Their output directories
/// are removed at their ends.
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
    let short = Bounds {
        runs: None,
        time: args.time / SHARE,
    };
    // A campaign that ends by its time drops the chunks that are under way, which one that ends
    // by its count does not: so the time is turned into a count first.
    let rate = campaign(args, target, way, short, stop)?;
    let long = Bounds {
        runs: Some(((rate * args.time.as_secs_f64()) as u64).max(FEWEST)),
        time: args.time * PATIENCE,
    };
    campaign(args, target, way, long, stop)
}

/// Where a campaign ends.
struct Bounds {
    runs: Option<u64>,
    time: Duration,
}

/// Runs a campaign, and gives its runs per second.
fn campaign(
    args: &Args,
    target: &Target,
    way: Way,
    bounds: Bounds,
    stop: &AtomicBool,
) -> Result<f64, Failure> {
    let out = tempfile::Builder::new()
        .prefix("ddfuzz-doctor-")
        .tempdir()
        .map_err(|error| Failure::file(&std::env::temp_dir(), "making a directory in", &error))?;
    let campaign = campaign_of(target, way, Some(SEED));
    let id = campaign.id.clone();
    let store = Mutex::new(Store::create_or_resume(&out.path().join("out"), campaign)?);
    let settings = Settings {
        seed: SEED,
        max_len: args.max_len,
        runs: bounds.runs,
        time: Some(bounds.time),
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
            jobs: 1,
        },
        known: BTreeSet::new(),
    };
    let summary = campaign::run(&store, &id, &settings, &mut Silent, stop)?;
    Ok(summary.runs_per_s())
}
