//! treereduce: deletes nodes of a syntax tree; that of C, or else of JavaScript.

use std::fs;
use std::process::Command;

use super::{Peer, unless_installed};
use crate::families::Case;
use crate::families::real::installed;
use crate::job::Job;

/// The tool.
pub struct Treereduce;

impl Peer for Treereduce {
    fn name(&self) -> String {
        "treereduce".to_owned()
    }

    fn missing(&self) -> Option<String> {
        let how = "cargo install treereduce-c treereduce-javascript";
        unless_installed(&["treereduce-javascript"], how)
    }

    fn reads(&self, case: &Case) -> Result<(), &'static str> {
        // Its grammar takes whatever has an error in it, but not what is no text.
        if !case.is_text {
            return Err("for texts only");
        }
        match case.ending == "c" && installed("treereduce-c").is_none() {
            true => Err("treereduce-c is not installed"),
            false => Ok(()),
        }
    }

    fn commands(&self, job: &Job<'_>) -> Result<Vec<Command>, String> {
        let (program, candidate) = match job.case.ending {
            "c" => ("treereduce-c", "@@.c"),
            _ => ("treereduce-javascript", "@@.js"),
        };
        let mut command = Command::new(program);
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
            .arg(candidate);
        Ok(vec![command])
    }

    fn result(&self, job: &Job<'_>) -> Option<Vec<u8>> {
        fs::read(job.file("out")).ok()
    }
}
