//! shrinkray: passes over many formats, in shortlex order.

use std::fs;
use std::process::Command;

use super::{Peer, unless_installed};
use crate::job::Job;

/// The tool.
pub struct Shrinkray;

impl Peer for Shrinkray {
    fn name(&self) -> String {
        "shrinkray".to_owned()
    }

    fn missing(&self) -> Option<String> {
        unless_installed(&["shrinkray"], "pip install shrinkray")
    }

    fn commands(&self, job: &Job<'_>) -> Result<Vec<Command>, String> {
        let mut command = Command::new("shrinkray");
        command.args(["--parallelism", "1", "--timeout", "10", "--ui", "basic"]);
        // Without a language model, and without copies of what it has tried.
        command.args(["--no-llm", "--no-history", "--trivial-is-not-error"]);
        command.arg(&job.judge).arg(&job.input);
        Ok(vec![command])
    }

    fn result(&self, job: &Job<'_>) -> Option<Vec<u8>> {
        fs::read(&job.input).ok()
    }
}
