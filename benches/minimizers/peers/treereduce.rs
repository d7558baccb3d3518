//! treereduce: deletes nodes of a syntax tree; here that of JavaScript.

use std::fs;
use std::process::Command;

use super::{Peer, unless_installed};
use crate::families::Case;
use crate::job::Job;

/// The tool.
pub struct Treereduce;

impl Peer for Treereduce {
    fn name(&self) -> String {
        "treereduce".to_owned()
    }

    fn missing(&self) -> Option<String> {
        let how = "cargo install treereduce-javascript";
        unless_installed(&["treereduce-javascript"], how)
    }

    fn reads(&self, case: &Case) -> Result<(), &'static str> {
        // Its grammar takes whatever has an error in it, but not what is no text.
        match case.is_text {
            true => Ok(()),
            false => Err("for texts only"),
        }
    }

    fn commands(&self, job: &Job<'_>) -> Result<Vec<Command>, String> {
        let mut command = Command::new("treereduce-javascript");
        command
            .args([
                "-q",
                "--jobs",
                "1",
                "--slow",
                "--on-parse-error",
                "ignore",
                "-s",
            ])
            .arg(&job.input)
            .arg("-o")
            .arg(job.file("out"))
            .arg("--")
            .arg(&job.judge)
            .arg("@@.js");
        Ok(vec![command])
    }

    fn result(&self, job: &Job<'_>) -> Option<Vec<u8>> {
        fs::read(job.file("out")).ok()
    }
}
