//! How fast a way is: measured by a campaign, so that it is the figure that `run` will give.

use std::collections::BTreeSet;
use std::sync::Mutex;
use std::sync::atomic::AtomicBool;

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
    let settings = Settings {
        seed: SEED,
        max_len: args.max_len,
        runs: None,
        time: Some(args.time),
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
