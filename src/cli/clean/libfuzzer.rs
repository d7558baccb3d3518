//! Measures the coverage of a corpus with the program's own libFuzzer (`-merge=1`), as a check of
//! the kept subset.

use std::collections::HashMap;
use std::ffi::{OsStr, OsString};
use std::io;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use crate::cli::cargo::libfuzzer::{FuzzerOutput, Process, Scratch, TerminalUse, flag};
use crate::corpus::{FuzzerMerge, MergeOutcome};
use crate::exec::{Program, Sandbox, Target, Way, find_program, is_libfuzzer};
use crate::report::clean::LibFuzzerCoverage;

/// Factor by which libFuzzer's time limit for one input in a merge exceeds the target's time limit;
/// the result is at least [`LEAST_SECONDS`]. It is large because other processes share the
/// processor.
const TIME_FACTOR: u32 = 10;
const LEAST_SECONDS: u64 = 60;
/// Maximum number of symbolic links to inputs that are put into `/dev/shm`: each takes about a
/// kilobyte of memory.
const MOST_IN_MEMORY: usize = 50_000;
/// Interval at which ddfuzz checks whether the libFuzzer process has ended.
const POLL_INTERVAL: Duration = Duration::from_millis(5);

/// A libFuzzer binary that measures the coverage of a corpus by merging it (`-merge=1`).
#[derive(Debug)]
pub struct LibFuzzer {
    program: PathBuf,
    env: Vec<(OsString, OsString)>,
    cwd: Option<PathBuf>,
    /// Flags of libFuzzer among the target's command-line arguments, which each merge also gets.
    flags: Vec<OsString>,
    seconds: u64,
}

impl LibFuzzer {
    /// Returns the libFuzzer that is linked into the target; `None` if there is none, if the target
    /// is not run through libFuzzer's entry function, or if it is to run in a sandbox or with
    /// exactly the given environment.
    pub fn of(target: &Target, way: Way) -> Option<LibFuzzer> {
        let Program::Path(program) = &target.program else {
            return None;
        };
        let is_free = target.sandbox == Sandbox::Off && !target.env_only;
        if way != Way::Harness || !is_free || !is_libfuzzer(target) {
            return None;
        }
        let program = find_program(program).ok()?;
        let wall = target.limits.wall.saturating_mul(TIME_FACTOR).as_secs();
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

    /// Runs libFuzzer to merge the corpora `folders` into the first of them. Returns its parsed
    /// output, or a text that says why it failed, which is `interrupted` if `stop` turned true.
    /// `scratch` is its working directory, unless the target has one.
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
                None => std::thread::sleep(POLL_INTERVAL),
            }
        }
    }
}

impl FuzzerMerge for LibFuzzer {
    fn merge(
        &self,
        kept: &[PathBuf],
        others: &[PathBuf],
        stop: &AtomicBool,
    ) -> Result<MergeOutcome, String> {
        let scratch = scratch(kept.len() + others.len()).map_err(no_room)?;
        let into = linked(&scratch, "kept", kept).map_err(no_room)?;
        let from = linked(&scratch, "others", others).map_err(no_room)?;
        let said = self.run(&[&into, &from], scratch.path(), stop)?;
        if said.is_restarted {
            return Err("it was started again after a file that it does not run".to_owned());
        }
        let (cov, ft) = said.coverage.ok_or("it reported no coverage")?;
        let added = new_files(&into);
        Ok(MergeOutcome {
            all: LibFuzzerCoverage { cov, ft },
            added: added.map_err(|error| format!("what it added cannot be read: {error}"))?,
        })
    }
}

/// Creates a temporary directory for `links` symbolic links: in `/dev/shm`, which is ten times as
/// fast, unless there are too many links or it cannot be written.
fn scratch(links: usize) -> io::Result<Scratch> {
    let memory = Path::new("/dev/shm");
    let in_memory = (links <= MOST_IN_MEMORY).then(|| Scratch::within(memory));
    in_memory.and_then(Result::ok).map_or_else(Scratch::new, Ok)
}

/// Creates a folder `name` in `scratch` with symbolic links to the files; returns its path. Each
/// link leads through another one to the file's directory: file systems keep a short link in its
/// inode, and a long one in a block.
fn linked(scratch: &Scratch, name: &str, files: &[PathBuf]) -> io::Result<PathBuf> {
    let folder = scratch.path().join(name);
    std::fs::create_dir(&folder)?;
    let mut directories: HashMap<PathBuf, PathBuf> = HashMap::new();
    for (number, file) in files.iter().enumerate() {
        let file = std::path::absolute(file)?;
        let (Some(directory), Some(file_name)) = (file.parent(), file.file_name()) else {
            return Err(io::ErrorKind::IsADirectory.into());
        };
        let through = match directories.get(directory) {
            Some(known) => known.clone(),
            None => {
                let link = format!("{name}-{}", directories.len());
                symlink(directory, scratch.path().join(&link))?;
                let through = Path::new("..").join(link);
                directories.insert(directory.to_owned(), through.clone());
                through
            }
        };
        symlink(through.join(file_name), folder.join(number.to_string()))?;
    }
    Ok(folder)
}

/// Returns, sorted, the contents of those files in the folder that are not symbolic links: inputs
/// that libFuzzer's merge has added.
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

/// Returns the environment variables for libFuzzer: those in `set`, with leak detection switched
/// off in `ASAN_OPTIONS`.
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

    #[test]
    fn links_are_short_wherever_the_files_lie() {
        let (scratch, far) = (Scratch::new().unwrap(), Scratch::new().unwrap());
        let folders = ["a", "b"].map(|name| far.path().join(name.repeat(200)));
        let files = folders.map(|folder| {
            std::fs::create_dir(&folder).unwrap();
            std::fs::write(folder.join("same"), folder.as_os_str().as_encoded_bytes()).unwrap();
            folder.join("same")
        });
        let folder = linked(&scratch, "others", &files).unwrap();
        for (number, file) in files.iter().enumerate() {
            let link = folder.join(number.to_string());
            assert!(link.read_link().unwrap().as_os_str().len() < 60);
            assert_eq!(std::fs::read(link).unwrap(), std::fs::read(file).unwrap());
        }
    }
}
