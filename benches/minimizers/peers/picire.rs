//! picire: parallel delta debugging in Python.

use std::fs;
use std::process::Command;

use super::{Peer, unless_installed};
use crate::job::Job;

/// The tool.
pub struct Picire;

impl Peer for Picire {
    fn name(&self) -> String {
        "picire".to_owned()
    }

    fn missing(&self) -> Option<String> {
        unless_installed(&["picire"], "pip install picire")
    }

    fn commands(&self, job: &Job<'_>) -> Result<Vec<Command>, String> {
        // Lines first only where lines mean something.
        let atom = if job.case.is_text { "both" } else { "char" };
        let mut command = Command::new("picire");
        command
            .args([
                "--cache",
                "content",
                "--encoding",
                "latin-1",
                "-q",
                "--atom",
                atom,
            ])
            .arg("-i")
            .arg(&job.input)
            .arg("--test")
            .arg(&job.judge)
            .arg("-o")
            .arg(job.file("out"));
        Ok(vec![command])
    }

    fn result(&self, job: &Job<'_>) -> Option<Vec<u8>> {
        fs::read(job.file("out").join(job.case.file_name("input"))).ok()
    }
}
