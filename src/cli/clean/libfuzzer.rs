//! The count that a libFuzzer makes of a corpus by itself.

use std::ffi::{OsStr, OsString};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use crate::cli::cargo::libfuzzer::{FuzzerOutput, Process, Scratch, TerminalUse, flag};
use crate::corpus::{Merged, Ruler};
use crate::exec::{Program, Sandbox, Target, Way, find_program, is_libfuzzer};
use crate::report::clean::Counted;

/// A run may take so many times its limit, in seconds at least [`LEAST_SECONDS`]: that it ends well
/// within the limit is known already, by a process that does nothing else.
const PATIENCE: u32 = 10;
const LEAST_SECONDS: u64 = 60;
/// Links in memory, at most: each takes about a kilobyte.
const MOST_IN_MEMORY: usize = 50_000;
/// How often it is looked whether it has ended.
const LOOK: Duration = Duration::from_millis(5);

/// A libFuzzer that counts what a corpus reaches while it merges (`-merge=1`).
#[derive(Debug)]
pub struct LibFuzzer {
    program: PathBuf,
    env: Vec<(OsString, OsString)>,
    cwd: Option<PathBuf>,
    /// The user's own flags for it.
    flags: Vec<OsString>,
    seconds: u64,
}

impl LibFuzzer {
    /// The one that is linked into the target. `None` where there is none, where the target is run
    /// through something else than libFuzzer's entry function, and where it may only be run in a
    /// sandbox or in an environment of its own.
    pub fn of(target: &Target, way: Way) -> Option<LibFuzzer> {
        let Program::Path(program) = &target.program else {
            return None;
        };
        let is_free = target.sandbox == Sandbox::Off && !target.env_only;
        if way != Way::Harness || !is_free || !is_libfuzzer(target) {
            return None;
        }
        let program = find_program(program).ok()?;
        let wall = target.limits.wall.saturating_mul(PATIENCE).as_secs();
        Some(LibFuzzer {
            program: std::path::absolute(program).ok()?,
            env: environment(&target.env),
            cwd: target.cwd.clone(),
            flags: (target.args.iter())
                .filter(|word| word.as_encoded_bytes().starts_with(b"-"))
                .cloned()
                .collect(),
            seconds: wall.clamp(LEAST_SECONDS, u64::from(u32::MAX / 2)),
        })
    }

    /// Merges the folders in the scratch directory, and gives what it said when it has ended well.
    fn run(
        &self,
        folders: &[&Path],
        scratch: &Path,
        stop: &AtomicBool,
    ) -> Result<FuzzerOutput, String> {
        let mut words = self.flags.clone();
        let own = [
            "-seed=1",
            "-rss_limit_mb=0",
            "-malloc_limit_mb=0",
            "-merge=1",
        ];
        words.extend(own.map(OsString::from));
        words.push(format!("-timeout={}", self.seconds).into());
        words.push(flag("artifact_prefix", &scratch.join("failing-")));
        words.extend(folders.iter().map(OsString::from));
        let cwd = self.cwd.as_deref().unwrap_or(scratch);
        let quiet = TerminalUse::Detached(false);
        let started = Process::start(&self.program, &words, &self.env, Some(cwd), quiet);
        let mut process = started.map_err(|error| format!("it cannot be started: {error}"))?;
        loop {
            if stop.load(Ordering::Relaxed) {
                return Err("interrupted".to_owned());
            }
            let end = process.end();
            match end.map_err(|error| format!("its end is not known: {error}"))? {
                Some(end) if end.status.success() => return Ok(end.said),
                Some(end) => {
                    return Err(format!("it ended with {}: {}", end.status, end.said.why()));
                }
                None => std::thread::sleep(LOOK),
            }
        }
    }
}

impl Ruler for LibFuzzer {
    fn merge(
        &self,
        kept: &[PathBuf],
        others: &[PathBuf],
        stop: &AtomicBool,
    ) -> Result<Merged, String> {
        let scratch = scratch(kept.len() + others.len()).map_err(no_room)?;
        let into = linked(&scratch, "kept", kept).map_err(no_room)?;
        let from = linked(&scratch, "others", others).map_err(no_room)?;
        let said = self.run(&[&into, &from], scratch.path(), stop)?;
        if said.is_restarted {
            return Err("it was started again after a file that it does not run".to_owned());
        }
        let (cov, ft) = said.coverage.ok_or("it reported no coverage")?;
        let added = new_files(&into);
        Ok(Merged {
            all: Counted { cov, ft },
            added: added.map_err(|error| format!("what it added cannot be read: {error}"))?,
        })
    }
}

/// A directory for so many links: in memory, where a link takes a tenth of the time, unless they
/// would need much of it.
fn scratch(links: usize) -> io::Result<Scratch> {
    let memory = Path::new("/dev/shm");
    let in_memory = (links <= MOST_IN_MEMORY).then(|| Scratch::within(memory));
    in_memory.and_then(Result::ok).map_or_else(Scratch::new, Ok)
}

/// Links to these files, in a folder of the scratch directory.
fn linked(scratch: &Scratch, name: &str, files: &[PathBuf]) -> io::Result<PathBuf> {
    let folder = scratch.path().join(name);
    std::fs::create_dir(&folder)?;
    for (number, file) in files.iter().enumerate() {
        let file = std::path::absolute(file)?;
        std::os::unix::fs::symlink(file, folder.join(number.to_string()))?;
    }
    Ok(folder)
}

/// What stands in the folder and is no link.
fn new_files(folder: &Path) -> io::Result<Vec<Vec<u8>>> {
    let mut all = Vec::new();
    for entry in std::fs::read_dir(folder)? {
        let entry = entry?;
        if entry.file_type()?.is_file() {
            all.push(std::fs::read(entry.path())?);
        }
    }
    all.sort_unstable();
    Ok(all)
}

fn no_room(error: io::Error) -> String {
    format!("its corpus cannot be put in a temporary directory: {error}")
}

/// The variables that are set for it: what leaks is not looked for at its end.
fn environment(set: &[(OsString, OsString)]) -> Vec<(OsString, OsString)> {
    const OPTIONS: &str = "ASAN_OPTIONS";
    let known = set.iter().rev().find(|(name, _)| name == OPTIONS);
    let known = known.map(|(_, value)| value.clone());
    let mut value = (known.or_else(|| std::env::var_os(OPTIONS))).unwrap_or_default();
    if !value.is_empty() {
        value.push(OsStr::new(":"));
    }
    value.push("detect_leaks=0");
    let mut all = set.to_vec();
    all.push((OPTIONS.into(), value));
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_options_of_the_user_stay() {
        let set = [("ASAN_OPTIONS".into(), "a=1".into())];
        let all = environment(&set);
        assert_eq!(all.last().unwrap().1, "a=1:detect_leaks=0");
    }

    #[test]
    fn only_what_a_merge_adds_is_no_link() {
        let scratch = Scratch::new().unwrap();
        let file = scratch.path().join("file");
        std::fs::write(&file, "kept").unwrap();
        let folder = linked(&scratch, "kept", &[file]).unwrap();
        std::fs::write(folder.join("added"), "new").unwrap();
        assert_eq!(new_files(&folder).unwrap(), [b"new"]);
    }
}
