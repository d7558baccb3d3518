//! afl-tmin of AFL++: blocks, alphabet and characters through a fork server.

use std::fs;
use std::process::Command;

use super::{Peer, unless_installed};
use crate::families::Case;
use crate::job::Job;
use crate::programs::Driver;

/// The tool.
pub struct AflTmin;

impl Peer for AflTmin {
    fn name(&self) -> String {
        "afl-tmin".to_owned()
    }

    fn missing(&self) -> Option<String> {
        unless_installed(&["afl-tmin", "afl-clang-fast"], "apt-get install afl++")
    }

    fn reads(&self, case: &Case) -> Result<(), &'static str> {
        match case.is_judged_by_a_script() {
            true => Err("for crashes only"),
            false => Ok(()),
        }
    }

    fn commands(&self, job: &Job<'_>) -> Result<Vec<Command>, String> {
        let program = job.program(Driver::Afl)?;
        let mut command = Command::new("afl-tmin");
        command
            .args(["-t", "2000", "-m", "none", "-i"])
            .arg(&job.input)
            .arg("-o")
            .arg(job.file("out"))
            .arg("--")
            .arg(program)
            .arg("@@");
        Ok(vec![command])
    }

    fn result(&self, job: &Job<'_>) -> Option<Vec<u8>> {
        fs::read(job.file("out")).ok()
    }
}
