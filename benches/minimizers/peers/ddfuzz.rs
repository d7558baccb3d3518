//! ddfuzz itself, as a user calls it: `ddfuzz min`, then `ddfuzz log verify`.

use std::fs;
use std::process::Command;

use ddfuzz::minimize::SEARCHES;
use serde_json::Value;

use super::Peer;
use crate::job::Job;
use crate::measure::LASTING;
use crate::programs::Driver;
use crate::row::{Minimality, Row};

/// The program of this build.
const DDFUZZ: &str = env!("CARGO_BIN_EXE_ddfuzz");

/// The searches that are measured, where this build has them, best first.
const MEASURED: [&str; 3] = ["full", "subset", "ddmin"];

/// A search of ddfuzz.
pub struct Ddfuzz {
    search: &'static str,
}

/// The searches as tools. The first alone where nothing is measured.
pub fn searches(measures: bool) -> Vec<Box<dyn Peer>> {
    let known = MEASURED.into_iter().filter(|name| SEARCHES.contains(name));
    known
        .take(if measures { MEASURED.len() } else { 1 })
        .map(|search| Box::new(Ddfuzz { search }) as Box<dyn Peer>)
        .collect()
}

impl Peer for Ddfuzz {
    fn name(&self) -> String {
        format!("ddfuzz-{}", self.search)
    }

    fn missing(&self) -> Option<String> {
        None
    }

    fn commands(&self, job: &Job<'_>) -> Result<Vec<Command>, String> {
        let mut command = Command::new(DDFUZZ);
        command
            .args(["min", "--json", "--force", "--search", self.search])
            .arg("--budget-time")
            .arg(format!("{}s", (job.limit * LASTING).as_secs() - 2))
            .arg(&job.input)
            .arg("-o")
            .arg(job.file("result"));
        match job.case.is_judged_by_a_script() {
            true => command.arg("--test").arg(&job.judge),
            false => command.arg("--").arg(job.program(Driver::Program)?),
        };
        Ok(vec![command])
    }

    fn result(&self, job: &Job<'_>) -> Option<Vec<u8>> {
        fs::read(job.file("result")).ok()
    }

    fn search(&self) -> Option<&'static str> {
        Some(self.search)
    }

    /// The figures of the log, which leave checks out, and what `log verify` says.
    fn refine(&self, job: &Job<'_>, row: &mut Row) -> Result<(), String> {
        let text = fs::read(job.file("stdout")).map_err(|error| error.to_string())?;
        let Ok(report) = serde_json::from_slice::<Value>(&text) else {
            return Ok(());
        };
        if let Some(message) = report["error"]["message"].as_str() {
            row.note = Some(message.to_owned());
            return Ok(());
        }
        let tests = |kind: &str| report["tests"][kind].as_u64().unwrap_or_default();
        let (proof, after) = proof_and_after(job)?;
        row.tests = tests("executed") - proof - after;
        row.checks = tests("checks") + proof;
        let claim = report["claim"].as_str().unwrap_or_default();
        row.timed_out |= claim == "best-so-far";
        if let Some((_, Minimality::Minimal { proved })) = &mut row.result {
            *proved = claim != "best-so-far";
        }
        if claim != "best-so-far" && !matches!(row.result, Some((_, Minimality::Minimal { .. }))) {
            row.note = Some(format!("claims {claim}, which is false"));
            return Ok(());
        }
        let verified = Command::new(DDFUZZ)
            .args(["log", "verify", "-q"])
            .arg(job.file("result.log.jsonl"))
            .output()
            .map_err(|error| format!("ddfuzz log verify: {error}"))?;
        if !verified.status.success() {
            let why = String::from_utf8_lossy(&verified.stderr).trim().to_owned();
            row.note = Some(format!("`log verify` does not confirm it: {why}"));
        }
        Ok(())
    }
}

/// Returns how many tests repeated those of the search in processes of their own, for the proof, and how
/// many others were run when the result was found, to give its values their last form.
fn proof_and_after(job: &Job<'_>) -> Result<(u64, u64), String> {
    let log =
        fs::read_to_string(job.file("result.log.jsonl")).map_err(|error| error.to_string())?;
    let lines = log
        .lines()
        .filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let (mut proof, mut after, mut is_after) = (0, 0, false);
    for line in lines {
        is_after |= line["pass"] == "values";
        if line["kind"] == "test" && line["source"] == "run" {
            match line["phase"] == "proof" {
                true => proof += 1,
                false => after += u64::from(is_after),
            }
        }
    }
    Ok((proof, after))
}
