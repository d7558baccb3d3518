//! Measures the coverage of files with the program's own libFuzzer, as a check of the kept subset.
//! Uses the inner process of libFuzzer's `-merge=1`, which runs the files.

use std::ffi::{OsStr, OsString};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use crate::cli::cargo::libfuzzer::{Process, Scratch, TerminalUse, flag};
use crate::corpus::{NewCoverage, OwnFuzzer};
use crate::exec::{Program, Sandbox, Target, Way, find_program, is_libfuzzer};

/// Factor between the target's time limit and libFuzzer's time limit for one input in a merge,
/// which is at least [`LEAST_SECONDS`]. It is large because other processes share the processor.
const TIME_FACTOR: u32 = 10;
const LEAST_SECONDS: u64 = 60;
/// Interval at which ddfuzz checks whether the libFuzzer process has ended.
const POLL_INTERVAL: Duration = Duration::from_millis(5);

/// A libFuzzer binary that measures the coverage of files by a merge.
#[derive(Debug)]
pub struct LibFuzzer {
    program: PathBuf,
    env: Vec<(OsString, OsString)>,
    cwd: Option<PathBuf>,
    /// Those of the target's command-line arguments that are flags of libFuzzer; they are passed to
    /// each merge, too.
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

    /// Runs `files`, in this order, in the inner process of a libFuzzer merge, and returns the
    /// lines that libFuzzer writes about them. The error is a text that says why it failed; it is
    /// `interrupted` if `stop` turned true.
    fn told(&self, mode: Mode, files: &[PathBuf], stop: &AtomicBool) -> Result<Vec<u8>, String> {
        let scratch = Scratch::new().map_err(no_room)?;
        let control = scratch.path().join("control");
        let head = control_head(scratch.path(), files).map_err(no_room)?;
        std::fs::write(&control, &head).map_err(no_room)?;
        self.run(mode, &control, scratch.path(), stop)?;
        let text = std::fs::read(&control);
        let mut text = text.map_err(|error| format!("its result cannot be read: {error}"))?;
        text.drain(..head.len().min(text.len()));
        Ok(text)
    }

    /// Starts the inner process of a libFuzzer merge and waits for its end. The process runs each
    /// file that the file `control` names, and appends to `control` what the file reaches.
    /// `scratch`: the working directory of the process, unless the target has one.
    fn run(
        &self,
        mode: Mode,
        control: &Path,
        scratch: &Path,
        stop: &AtomicBool,
    ) -> Result<(), String> {
        let mut words = self.flags.clone();
        let own = [
            "-seed=1",
            "-rss_limit_mb=0",
            "-malloc_limit_mb=0",
            mode.flag(),
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

impl OwnFuzzer for LibFuzzer {
    fn counts_stack_depth_only(&self) -> bool {
        self.flags.is_empty()
    }

    fn merge(&self, files: &[PathBuf], stop: &AtomicBool) -> Result<Vec<NewCoverage>, String> {
        let told = self.told(Mode::New, files, stop)?;
        let new = lines_of(&told, "FT", files.len()).zip(lines_of(&told, "COV", files.len()));
        let (features, edges) = new.ok_or(NO_COVERAGE)?;
        let new = features
            .iter()
            .zip(&edges)
            .map(|(features, edges)| NewCoverage {
                features: features.len() as u64,
                edges: edges.len() as u64,
            });
        Ok(new.collect())
    }

    fn features(&self, files: &[PathBuf], stop: &AtomicBool) -> Result<Vec<Vec<u64>>, String> {
        let told = self.told(Mode::All, files, stop)?;
        lines_of(&told, "FT", files.len()).ok_or_else(|| NO_COVERAGE.to_owned())
    }
}

const NO_COVERAGE: &str = "it reported no coverage";

/// Which features of each file libFuzzer reports in a merge.
#[derive(Clone, Copy)]
enum Mode {
    /// Only features that no file before it in the merge has reached.
    New,
    /// All features that the file reaches; libFuzzer before LLVM 13 reports those of [`Mode::New`].
    All,
}

impl Mode {
    fn flag(self) -> &'static str {
        match self {
            Mode::New => "-merge_inner=1",
            Mode::All => "-merge_inner=2",
        }
    }
}

/// Returns the beginning of the control file of a libFuzzer merge: the number of files, a 0 (the
/// number of files that are kept in any case, which is not used here), and the paths of `files`,
/// one a line. A file whose path has a line break is named by a symbolic link in `scratch`.
fn control_head(scratch: &Path, files: &[PathBuf]) -> io::Result<Vec<u8>> {
    let mut head = format!("{}\n0\n", files.len()).into_bytes();
    for (number, file) in files.iter().enumerate() {
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

/// Returns, for each of `count` files, the numbers that libFuzzer has reported in a merge in lines
/// of one `kind`: `FT` for features, `COV` for the edges that no file before it has reached.
/// `told`: all that libFuzzer has written; each line has the file's number after the kind. `None`
/// if a file has no such line.
fn lines_of(told: &[u8], kind: &str, count: usize) -> Option<Vec<Vec<u64>>> {
    let mut all: Vec<Option<Vec<u64>>> = vec![None; count];
    for line in String::from_utf8_lossy(told).lines() {
        let mut words = line.split_ascii_whitespace();
        if words.next() != Some(kind) {
            continue;
        }
        let mut numbers = words.map_while(|word| word.parse::<u64>().ok());
        let number = numbers.next().and_then(|one| usize::try_from(one).ok());
        if let Some(of_file) = number.and_then(|number| all.get_mut(number)) {
            *of_file = Some(numbers.collect());
        }
    }
    all.into_iter().collect()
}

fn no_room(error: io::Error) -> String {
    format!("its list of files cannot be written: {error}")
}

/// Returns the environment variables for libFuzzer: those in `set`, with leak detection switched
/// off in `ASAN_OPTIONS`. Unless the user has set `GLIBC_TUNABLES`, it also asks glibc for huge
/// pages: libFuzzer starts by clearing two tables of 8 MiB, page by page.
fn environment(set: &[(OsString, OsString)]) -> Vec<(OsString, OsString)> {
    const OPTIONS: &str = "ASAN_OPTIONS";
    const TUNABLES: &str = "GLIBC_TUNABLES";
    let known = |name: &str| {
        let own = set.iter().rev().find(|(known, _)| known == name);
        own.map_or_else(|| std::env::var_os(name), |(_, value)| Some(value.clone()))
    };
    let mut value = known(OPTIONS).unwrap_or_default();
    if !value.is_empty() {
        value.push(OsStr::new(":"));
    }
    value.push("detect_leaks=0");
    let mut all = set.to_vec();
    all.push((OPTIONS.into(), value));
    if known(TUNABLES).is_none() {
        all.push((TUNABLES.into(), "glibc.malloc.hugetlb=1".into()));
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_options_of_the_user_stay() {
        let set = [("ASAN_OPTIONS".into(), "a=1".into())];
        let value = |set: &[(OsString, OsString)], name: &str| {
            let mut all = environment(set).into_iter();
            all.rfind(|(known, _)| known == name)
                .map(|(_, value)| value)
        };
        assert_eq!(value(&set, "ASAN_OPTIONS").unwrap(), "a=1:detect_leaks=0");
        let set = [("GLIBC_TUNABLES".into(), "glibc.rtld.nns=1".into())];
        assert_eq!(value(&set, "GLIBC_TUNABLES").unwrap(), "glibc.rtld.nns=1");
    }

    #[test]
    fn each_file_has_a_line_of_features_and_one_of_edges() {
        let told = b"STARTED 0 2\nFT 0 1 2\nCOV 0 7\nSTARTED 1 3\nFT 1\nCOV 1\n\
                     STARTED 2 5\nFT 2 9\nCOV 2 8 10\n";
        let features = vec![vec![1, 2], vec![], vec![9]];
        assert_eq!(lines_of(told, "FT", 3), Some(features));
        let edges = vec![vec![7], vec![], vec![8, 10]];
        assert_eq!(lines_of(told, "COV", 3), Some(edges));
        assert_eq!(lines_of(told, "FT", 4), None);
        assert_eq!(lines_of(b"STARTED 0 2\n", "FT", 1), None);
    }

    #[test]
    fn each_path_is_a_line() {
        let scratch = Scratch::new().unwrap();
        let files = ["a", "b\nc"].map(|name| scratch.path().join(name));
        for file in &files {
            std::fs::write(file, file.as_os_str().as_bytes()).unwrap();
        }
        let head = control_head(scratch.path(), &files).unwrap();
        let head = String::from_utf8(head).unwrap();
        let lines: Vec<&str> = head.lines().collect();
        assert_eq!(lines[..2], ["2", "0"]);
        for (line, file) in lines[2..].iter().zip(&files) {
            assert_eq!(std::fs::read(line).unwrap(), file.as_os_str().as_bytes());
        }
        assert_eq!(lines.len(), 4);
    }
}
