//! Runs per second of CPU time of each utility, by two ways.

use std::ffi::OsString;
use std::time::Duration;

use ddfuzz::campaign::study::list::{List, installed};
use ddfuzz::campaign::study::{RequestedUtilities, RunEnvironment, Selection, StudyPlan, Utility};
use ddfuzz::exec::{AbandonWhen, ExecError, Freshness, Limits, Sandbox, Target, Way, start};

use crate::cost;

/// Small inputs, as in the small sets of the 2020 study, in bytes.
const SMALL: u64 = 1000;

/// Number of inputs in a request, as `revisit` makes them.
const AT_ONCE: usize = 32;

/// What one utility costs.
pub struct Row {
    pub utility: String,
    pub way: Way,
    pub runs: usize,
    /// CPU time of all runs as `revisit` makes them.
    pub ours: Duration,
    /// The same by one `execve` a run.
    pub spawned: Duration,
}

impl Row {
    pub fn rate(&self, cpu: Duration) -> f64 {
        self.runs as f64 / cpu.as_secs_f64().max(1e-6)
    }

    pub fn ratio(&self) -> f64 {
        self.rate(self.ours) / self.rate(self.spawned)
    }
}

/// Measures the first `most` utilities, each by `runs` runs. One that cannot be run is left out.
pub fn measure(runs: usize, most: usize) -> Vec<Row> {
    let selection = Selection {
        list: List::debian(),
        requested: RequestedUtilities {
            installed: true,
            ..RequestedUtilities::default()
        },
        ..Selection::default()
    };
    let mut utilities = selection.utilities();
    utilities.retain(|utility| utility.skip_reason.is_none());
    for utility in &mut utilities {
        utility
            .invocations
            .retain(|invocation| !invocation.is_terminal());
        utility.invocations.truncate(1);
    }
    utilities.retain(|utility| !utility.invocations.is_empty());
    let rows = utilities.iter().take(most).filter_map(|utility| {
        let row = row(utility, runs);
        if let Err(error) = &row {
            eprintln!("{}: {error}", utility.name);
        }
        row.ok()
    });
    rows.collect()
}

fn row(utility: &Utility, runs: usize) -> Result<Row, ExecError> {
    let environment = RunEnvironment {
        limits: Limits::default(),
        sandbox: Sandbox::On,
        path: OsString::from(installed::PATH.join(":")),
        freeze_start: false,
        abandon_when: AbandonWhen::default(),
    };
    let program = utility.path.clone().unwrap_or_default();
    let target = environment.target(program, &utility.invocations[0], &[]);
    let plan = StudyPlan {
        seed: 1,
        max_len: SMALL,
        set: [].into(),
    };
    let inputs: Vec<Vec<u8>> = (1..=runs as u64)
        .map(|run| plan.input(utility, run).build())
        .collect();
    let (way, ours) = cpu_of(&target, None, Freshness::Shared, &inputs)?;
    let command = Some(Way::Command);
    let (_, spawned) = cpu_of(&target, command, Freshness::Fresh, &inputs)?;
    Ok(Row {
        utility: utility.name.clone(),
        way,
        runs,
        ours,
        spawned,
    })
}

/// The CPU time of all these runs, start and end of the server included.
fn cpu_of(
    target: &Target,
    way: Option<Way>,
    freshness: Freshness,
    inputs: &[Vec<u8>],
) -> Result<(Way, Duration), ExecError> {
    let (way, cost) = cost::measure(|| {
        let mut executor = start(target, way, freshness)?.executor;
        let inputs: Vec<&[u8]> = inputs.iter().map(|input| &input[..]).collect();
        let mut left = &inputs[..];
        while !left.is_empty() {
            let some = &left[..left.len().min(AT_ONCE)];
            left = &left[executor.run_some(some)?.len()..];
        }
        Ok::<Way, ExecError>(executor.way())
    });
    Ok((way?, cost.cpu))
}
