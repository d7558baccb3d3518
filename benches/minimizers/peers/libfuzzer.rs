//! libFuzzer's `-minimize_crash=1`: random mutations that are no longer.

use std::fs;
use std::process::{Command, ExitStatus};

use super::Peer;
use crate::families::Case;
use crate::families::real::installed;
use crate::job::Job;
use crate::programs::Driver;

/// Runs in vain after which a round ends; without it a round lasts until the time is over.
const RUNS: &str = "-runs=100000";

/// The tool.
pub struct LibFuzzer;

impl Peer for LibFuzzer {
    fn name(&self) -> String {
        "libFuzzer".to_owned()
    }

    fn missing(&self) -> Option<String> {
        let how = "apt-get install clang, and libclang-rt-NN-dev of the same version NN";
        (installed("clang").is_none() || !links()).then(|| how.to_owned())
    }

    fn reads(&self, case: &Case) -> Result<(), &'static str> {
        match case.is_judged_by_a_script() {
            true => Err("for crashes only"),
            false => Ok(()),
        }
    }

    fn commands(&self, job: &Job<'_>) -> Result<Vec<Command>, String> {
        let program = job.program(Driver::Fuzzer)?;
        let artifacts = job.file("artifacts/");
        fs::create_dir(&artifacts).map_err(|error| error.to_string())?;
        let mut prefix = std::ffi::OsString::from("-artifact_prefix=");
        prefix.push(artifacts);
        let mut command = Command::new(program);
        command
            .args(["-minimize_crash=1", RUNS])
            .arg(format!("-max_total_time={}", job.limit.as_secs()))
            .arg(prefix)
            .arg(&job.input);
        Ok(vec![command])
    }

    fn result(&self, job: &Job<'_>) -> Option<Vec<u8>> {
        let files = fs::read_dir(job.file("artifacts")).ok()?.flatten();
        let texts = files.filter_map(|file| fs::read(file.path()).ok());
        let smallest = texts.min_by_key(Vec::len);
        Some(smallest.unwrap_or_else(|| job.case.input.clone()))
    }

    fn may_end_with(&self, _: ExitStatus) -> bool {
        // It ends so when it gets no further.
        true
    }
}

/// Whether there is the runtime that `-fsanitize=fuzzer` links.
fn links() -> bool {
    let asked = Command::new("clang").arg("-print-runtime-dir").output();
    let folder = asked.map(|output| String::from_utf8_lossy(&output.stdout).trim().to_owned());
    folder.is_ok_and(|folder| {
        // The layout with and without the architecture in the folder's name.
        let parent = std::path::Path::new(&folder).with_file_name("linux");
        [folder.into(), parent].iter().any(|folder| {
            let files = fs::read_dir(folder).into_iter().flatten().flatten();
            let names = files.map(|file| file.file_name().to_string_lossy().into_owned());
            names
                .into_iter()
                .any(|name| name.starts_with("libclang_rt.fuzzer"))
        })
    })
}
