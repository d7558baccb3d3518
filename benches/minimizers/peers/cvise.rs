//! C-Vise: passes for programs in C, of which those for any text are used where the input is not C.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::Command;

use super::{Peer, unless_installed};
use crate::job::Job;

/// The tool.
pub struct Cvise;

impl Peer for Cvise {
    fn name(&self) -> String {
        "cvise".to_owned()
    }

    fn missing(&self) -> Option<String> {
        unless_installed(&["cvise"], "apt-get install cvise")
    }

    fn commands(&self, job: &Job<'_>) -> Result<Vec<Command>, String> {
        // Its test has no arguments: the file lies in the current directory.
        let reduced = job.case.file_name("reduced");
        let script = format!("#!/bin/sh\nexec '{}' {reduced}\n", job.judge.display());
        let script = job.write("script", script.as_bytes())?;
        let executable = fs::Permissions::from_mode(0o755);
        fs::set_permissions(&script, executable).map_err(|error| error.to_string())?;
        job.write(&reduced, &job.case.input)?;
        let mut command = Command::new("cvise");
        command.args(["--n", "1", "--tidy", "--timeout", "10"]);
        if job.case.ending != "c" {
            command.arg("--not-c");
        }
        command.args(["script", &reduced]);
        Ok(vec![command])
    }

    fn result(&self, job: &Job<'_>) -> Option<Vec<u8>> {
        fs::read(job.file(&job.case.file_name("reduced"))).ok()
    }
}
