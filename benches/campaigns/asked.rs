//! A campaign of a tool that is let alone until it ends of itself: how many runs it has made, and
//! what they cost.

use std::path::Path;
use std::process::{Command, Stdio};

use crate::builds::Builds;
use crate::cost::{Cost, measure};
use crate::tools::{Campaign, Tool};
use crate::watched::end_orphans;

/// Runs, and what all of them cost together.
#[derive(Clone, Copy, Debug)]
pub struct Made {
    /// Runs.
    pub runs: u64,
    /// Of all processes of the tool.
    pub cost: Cost,
}

impl Made {
    /// Runs per second of CPU time.
    pub fn per_cpu_second(self) -> f64 {
        self.runs as f64 / self.cost.cpu.as_secs_f64().max(1e-9)
    }
}

/// Lets `tool` make the campaign.
///
/// # Errors
/// Where the tool cannot be built or started, or does not say how many runs it has made.
pub fn made(tool: Tool, builds: &Builds, campaign: &Campaign<'_>) -> Result<Made, String> {
    let command = tool.command(builds, campaign)?;
    let (stdout, cost) = output(command, campaign.work)?;
    let runs = tool.said(campaign.work, &stdout)?;
    Ok(Made { runs, cost })
}

/// What the command writes to its standard output, and, where it is libFuzzer's, to the other.
///
/// # Errors
/// Where it cannot be started.
pub fn output(mut command: Command, work: &Path) -> Result<(String, Cost), String> {
    command.stdin(Stdio::null());
    let (output, cost) = measure(|| {
        let output = command.output();
        // Their CPU time counts, too.
        end_orphans().and(output)
    });
    let output = output.map_err(|error| format!("{:?}: {error}", command.get_program()))?;
    let (stdout, stderr) = (output.stdout, output.stderr);
    let text = [stdout, stderr].concat();
    let text = String::from_utf8_lossy(&text).into_owned();
    if !matches!(output.status.code(), Some(0 | 1)) {
        return Err(format!(
            "it ended with {} in {}: {}",
            output.status,
            work.display(),
            text.lines().last().unwrap_or_default()
        ));
    }
    Ok((text, cost))
}
