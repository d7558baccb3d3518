//! halfempty: bisection that speculates. No registry has it: it is measured where it is installed.

use std::fs;
use std::process::Command;

use super::{Peer, unless_installed};
use crate::job::Job;

/// The tool.
pub struct Halfempty;

impl Peer for Halfempty {
    fn name(&self) -> String {
        "halfempty".to_owned()
    }

    fn missing(&self) -> Option<String> {
        let how = "build it from github.com/googleprojectzero/halfempty, and put it on PATH";
        unless_installed(&["halfempty"], how)
    }

    fn is_required(&self) -> bool {
        false
    }

    fn commands(&self, job: &Job<'_>) -> Result<Vec<Command>, String> {
        let mut command = Command::new("halfempty");
        command
            .args(["--num-threads=1", "--stable", "--quiet"])
            .arg(format!("--output={}", job.file("out").display()))
            .arg(&job.judge)
            .arg(&job.input);
        Ok(vec![command])
    }

    fn result(&self, job: &Job<'_>) -> Option<Vec<u8>> {
        fs::read(job.file("out")).ok()
    }
}
