//! lithium: chunks of falling size, from the end to the front.

use std::fs;
use std::process::{Command, ExitStatus};

use super::{Peer, unless_installed};
use crate::job::Job;

/// Runs the judge for lithium, whose tests are modules of Python.
const CONDITION: &str = "\
import subprocess


def interesting(args, prefix):
    return subprocess.call(args[:2]) == 0
";

/// More lines than this are minimized as lines first.
const LINES: usize = 8;

/// The tool.
pub struct Lithium;

impl Peer for Lithium {
    fn name(&self) -> String {
        "lithium".to_owned()
    }

    fn missing(&self) -> Option<String> {
        unless_installed(&["lithium"], "pip install lithium-reducer")
    }

    fn commands(&self, job: &Job<'_>) -> Result<Vec<Command>, String> {
        job.write("interesting.py", CONDITION.as_bytes())?;
        job.write("reduced", &job.case.input)?;
        let lines = job.case.input.iter().filter(|byte| **byte == b'\n').count();
        let atoms: &[&str] = match job.case.is_text && lines > LINES {
            true => &["--lines", "--char"],
            false => &["--char"],
        };
        let command = |atom: &&str| {
            let mut command = Command::new("lithium");
            command
                .args([atom, "interesting.py"])
                .arg(&job.judge)
                .arg("reduced");
            command
        };
        Ok(atoms.iter().map(command).collect())
    }

    fn result(&self, job: &Job<'_>) -> Option<Vec<u8>> {
        fs::read(job.file("reduced")).ok()
    }

    fn may_end_with(&self, status: ExitStatus) -> bool {
        // It ends so when nothing could be removed.
        status.code() == Some(1)
    }
}
