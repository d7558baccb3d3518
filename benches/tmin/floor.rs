//! The floor of a minimization: its runs alone, by a bare executor.

use std::fs;
use std::path::Path;

use ddfuzz::exec::{ExecError, Freshness, Program, Target, Way, start};
use serde_json::Value;

use crate::cost::{Cost, measure};
use crate::projects::Built;

/// What the floor of all figures is.
pub const WORK: &str = "the program's start and the same numbers of runs, bare";

/// How many runs of each kind a minimization has made, by its log.
#[derive(Clone, Copy, Debug, Default)]
pub struct Runs {
    /// Runs that passed in a process with others.
    shared: u32,
    /// Runs that passed in a process of their own.
    passing: u32,
    /// Runs that crashed, each of which ended its process.
    failing: u32,
}

impl Runs {
    /// Counts the runs in the log of the minimization whose result is `file`.
    pub fn of(file: &Path) -> Result<Runs, String> {
        let mut log = file.as_os_str().to_owned();
        log.push(".log.jsonl");
        let text = fs::read_to_string(log).map_err(|error| error.to_string())?;
        let mut runs = Runs::default();
        for line in text.lines() {
            let line: Value = serde_json::from_str(line).map_err(|error| error.to_string())?;
            let is_run = line["source"] == "run" || line["kind"] == "check";
            let count = match line["outcome"].as_str() {
                Some("PASS") if line["process"] == "shared" => &mut runs.shared,
                Some("PASS") => &mut runs.passing,
                Some(_) => &mut runs.failing,
                None => continue,
            };
            *count += u32::from(is_run);
        }
        Ok(runs)
    }
}

/// What so many runs cost, one after the other: those that crash are of the file `failing`, the
/// others of nothing.
pub fn floor(built: &Built, runs: Runs, failing: &Path) -> Result<Cost, String> {
    let failing = fs::read(failing).map_err(|error| error.to_string())?;
    let target = Target::new(Program::Path(built.program.clone()));
    let (made, cost) = measure(|| -> Result<(), ExecError> {
        let mut executor = start(&target, Some(Way::Harness), Freshness::Shared)?.executor;
        for _ in 0..runs.shared {
            executor.run(b"")?;
        }
        for _ in 0..runs.passing {
            executor.run_fresh(b"")?;
        }
        for _ in 0..runs.failing {
            executor.run_fresh(&failing)?;
        }
        Ok(())
    });
    made.map(|()| cost).map_err(|error| error.to_string())
}
