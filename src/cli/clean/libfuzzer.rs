//! Measures the coverage of a corpus with the program's own libFuzzer, by the inner process of its
//! `-merge=1`, as a check of the kept subset.

use std::collections::HashSet;
use std::ffi::{OsStr, OsString};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use crate::cli::cargo::libfuzzer::{Process, Scratch, TerminalUse, flag};
use crate::corpus::{FuzzerMerge, MergeOutcome};
use crate::exec::{Program, Sandbox, Target, Way, find_program, is_libfuzzer};
use crate::report::clean::LibFuzzerCoverage;

/// libFuzzer's time limit for one input in a merge is this number times the target's time limit,
/// but at least [`LEAST_SECONDS`]. The number is large because other processes share the processor.
const TIME_FACTOR: u32 = 10;
const LEAST_SECONDS: u64 = 60;
/// Interval at which ddfuzz checks whether the libFuzzer process has ended.
const POLL_INTERVAL: Duration = Duration::from_millis(5);

/// A libFuzzer binary that measures the coverage of a corpus by merging it.
#[derive(Debug)]
pub struct LibFuzzer {
    program: PathBuf,
    env: Vec<(OsString, OsString)>,
    cwd: Option<PathBuf>,
    /// Those of the target's command-line arguments that are flags of libFuzzer; each merge gets
    /// them, too.
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

    /// Runs libFuzzer's inner process of a merge: it runs each file that the file `control` names,
    /// and appends to `control` what each reaches. `scratch`: the working directory, unless the
    /// target has one. The error is a text that says why it failed; it is `interrupted` if `stop`
    /// turned true.
    fn run(&self, control: &Path, scratch: &Path, stop: &AtomicBool) -> Result<(), String> {
        let mut words = self.flags.clone();
        let own = [
            "-seed=1",
            "-rss_limit_mb=0",
            "-malloc_limit_mb=0",
            "-merge_inner=1",
        ];
        words.extend(own.map(OsString::from));
        words.push(flag("merge_control_file", control));
        words.push(format!("-timeout={}", self.seconds).into());
        words.push(flag("artifact_prefix", &scratch.join("failing-")));
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
                Some(end) if end.status.success() => return Ok(()),
                Some(end) => {
                    return Err(format!("it ended with {}: {}", end.status, end.said.why()));
                }
                None => std::thread::sleep(POLL_INTERVAL),
            }
        }
    }
}

impl FuzzerMerge for LibFuzzer {
    fn counts_stack_depth_only(&self) -> bool {
        self.flags.is_empty()
    }

    fn merge(
        &self,
        kept: &[PathBuf],
        others: &[PathBuf],
        stop: &AtomicBool,
    ) -> Result<MergeOutcome, String> {
        let scratch = Scratch::new().map_err(no_room)?;
        let control = scratch.path().join("control");
        let head = control_head(scratch.path(), kept, others).map_err(no_room)?;
        std::fs::write(&control, &head).map_err(no_room)?;
        self.run(&control, scratch.path(), stop)?;
        let text = std::fs::read(&control);
        let text = text.map_err(|error| format!("its result cannot be read: {error}"))?;
        let told = text.get(head.len()..).unwrap_or_default();
        let outcome = outcome_of(told, kept.len(), kept.len() + others.len());
        outcome.ok_or_else(|| "it reported no coverage".to_owned())
    }
}

/// Returns the beginning of the control file of a libFuzzer merge: the number of files, the number
/// of the `kept` ones, and the paths of all, one a line. The `kept` files stay in any case; of the
/// `others` the merge adds some. A file whose path has a line break is named by a symbolic link in
/// `scratch`.
fn control_head(scratch: &Path, kept: &[PathBuf], others: &[PathBuf]) -> io::Result<Vec<u8>> {
    let mut head = format!("{}\n{}\n", kept.len() + others.len(), kept.len()).into_bytes();
    for (number, file) in kept.iter().chain(others).enumerate() {
        let mut file = std::path::absolute(file)?;
        if file.as_os_str().as_bytes().contains(&b'\n') {
            let link = scratch.join(format!("link-{number}"));
            symlink(&file, &link)?;
            file = link;
        }
        head.extend_from_slice(file.as_os_str().as_bytes());
        head.push(b'\n');
    }
    Ok(head)
}

/// Reads the outcome of a merge of `all` files, of which the first `kept` stay in any case. `told`
/// is what libFuzzer's inner process has appended to the control file: for each file a line `FT`
/// with its features, and a line `COV` with the edges that no earlier file had, each with the
/// file's number in front. `None` if a file has no line `FT`.
fn outcome_of(told: &[u8], kept: usize, all: usize) -> Option<MergeOutcome> {
    let (mut features, mut edges) = (HashSet::new(), HashSet::new());
    let (mut seen, mut added) = (HashSet::new(), Vec::new());
    for line in String::from_utf8_lossy(told).lines() {
        let mut words = line.split_ascii_whitespace();
        let kind = words.next().unwrap_or_default();
        let mut numbers = words.map_while(|word| word.parse::<u64>().ok());
        let Some(number) = numbers.next().and_then(|one| usize::try_from(one).ok()) else {
            continue;
        };
        if kind == "COV" {
            edges.extend(numbers);
        } else if kind == "FT" && number < all {
            let before = features.len();
            features.extend(numbers);
            seen.insert(number);
            if number >= kept && features.len() > before {
                added.push(number - kept);
            }
        }
    }
    (seen.len() == all).then_some(MergeOutcome {
        all: LibFuzzerCoverage {
            cov: edges.len() as u64,
            ft: features.len() as u64,
        },
        added,
    })
}

fn no_room(error: io::Error) -> String {
    format!("its list of files cannot be written: {error}")
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
    fn a_merge_adds_what_reaches_something_new() {
        let told = b"STARTED 0 2\nFT 0 1 2\nCOV 0 7\nSTARTED 1 3\nFT 1\nCOV 1\n\
                     STARTED 2 5\nFT 2 2 9\nCOV 2 8\nSTARTED 3 5\nFT 3 9\nCOV 3\n";
        let outcome = outcome_of(told, 1, 4).unwrap();
        assert_eq!(outcome.all, LibFuzzerCoverage { cov: 2, ft: 3 });
        assert_eq!(outcome.added, [1]);
        assert_eq!(outcome_of(told, 1, 5), None);
        assert_eq!(outcome_of(b"STARTED 0 2\n", 1, 1), None);
    }

    #[test]
    fn each_path_is_a_line() {
        let scratch = Scratch::new().unwrap();
        let files = ["a", "b\nc"].map(|name| scratch.path().join(name));
        for file in &files {
            std::fs::write(file, file.as_os_str().as_bytes()).unwrap();
        }
        let head = control_head(scratch.path(), &files[..1], &files[1..]).unwrap();
        let head = String::from_utf8(head).unwrap();
        let lines: Vec<&str> = head.lines().collect();
        assert_eq!(lines[..2], ["2", "1"]);
        for (line, file) in lines[2..].iter().zip(&files) {
            assert_eq!(std::fs::read(line).unwrap(), file.as_os_str().as_bytes());
        }
        assert_eq!(lines.len(), 4);
    }
}
