//! Options that `min`, `max` and `diff` share: where results go, budgets, going on.

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::{Exit, Failure, amounts};
use crate::minimize::MinimizeError;
use crate::minimize::log::{Line, Log, OsText};

/// Where results go, budgets, going on.
#[derive(clap::Args, Clone)]
pub struct ResultArgs {
    /// The result file [default: the input's name with .min, .max or .diff]; an output directory,
    /// if it exists or ends with /
    #[arg(short, long, value_name = "PATH")]
    pub out: Option<PathBuf>,
    /// The log [default: the result file's name with .log.jsonl]
    #[arg(long, value_name = "FILE")]
    pub log: Option<PathBuf>,
    /// Longest time for tests, those before a --resume included
    #[arg(long, value_name = "TIME", value_parser = amounts::time)]
    pub budget_time: Option<Duration>,
    /// Most tests, those before a --resume included
    #[arg(long, value_name = "N")]
    pub budget_tests: Option<u64>,
    /// Write the candidates into the log
    #[arg(long)]
    pub log_inputs: bool,
    /// Test a text again that another configuration gave before, as the papers count
    #[arg(long)]
    pub no_cache: bool,
    /// Go on with a search that was cut off, or whose budget was too small
    #[arg(long, conflicts_with = "force")]
    pub resume: bool,
    /// Overwrite the result and the log
    #[arg(long)]
    pub force: bool,
}

/// Where the result goes.
pub enum Place {
    /// Into result files, the first of them the one that is asked for, and a log.
    File {
        /// The result files.
        results: Vec<PathBuf>,
        /// The log.
        log: PathBuf,
    },
    /// Into an output directory.
    Directory(PathBuf),
}

impl Place {
    /// The place that the options name. `inputs` are never written to. Unless `-o` does, `named`
    /// gives the result its name, with the first of `endings`; the others are put behind the
    /// result's name.
    pub fn choose(
        args: &ResultArgs,
        inputs: &[&Path],
        named: &Path,
        endings: &[&str],
    ) -> Result<Place, Failure> {
        let result = match &args.out {
            Some(out) if out.is_dir() || out.as_os_str().to_string_lossy().ends_with('/') => {
                return Ok(Place::Directory(out.clone()));
            }
            Some(out) => out.clone(),
            None => with_ending(named, endings[0]),
        };
        let log = args
            .log
            .clone()
            .unwrap_or_else(|| with_ending(&result, ".log.jsonl"));
        let more = endings
            .iter()
            .skip(1)
            .map(|ending| with_ending(&result, ending));
        let results: Vec<PathBuf> = std::iter::once(result.clone()).chain(more).collect();
        for file in results.iter().chain([&log]) {
            if inputs.iter().any(|input| is_same_file(file, input)) {
                let message = format!("{} is the input, which is only read", file.display());
                return Err(Failure::usage(message)
                    .path(file)
                    .hint("name another file with -o or --log"));
            }
            if file.exists() && !args.resume && !args.force {
                let message = format!("{} exists already", file.display());
                return Err(Failure::new(Exit::Usage, "exists", message)
                    .path(file)
                    .hint("--resume goes on with it, --force overwrites it, -o names another"));
            }
        }
        let twice = |result: &PathBuf| *result == log || is_same_file(result, &log);
        if results.iter().any(twice) {
            let message = format!("{} would be result and log in one", log.display());
            return Err(Failure::usage(message)
                .path(&log)
                .hint("name another file with --log"));
        }
        Ok(Place::File { results, log })
    }

    /// Removes what `--force` allows to overwrite; only once there is something to put there.
    pub fn clear(&self) -> Result<(), Failure> {
        let Place::File { results, log } = self else {
            return Ok(());
        };
        for file in results.iter().chain([log]) {
            if file.exists() {
                std::fs::remove_file(file).map_err(|e| Failure::file(file, "removing", &e))?;
            }
        }
        Ok(())
    }
}

/// The bytes of an input that is only read.
pub fn read_input(path: &Path) -> Result<Vec<u8>, Failure> {
    if path.is_dir() {
        let message = format!("{} is a directory, not an input", path.display());
        return Err(Failure::usage(message)
            .path(path)
            .hint("name a file, or an output directory of ddfuzz"));
    }
    std::fs::read(path).map_err(|error| Failure::file(path, "reading", &error))
}

/// Whether two names lead to one file.
pub fn is_same_file(one: &Path, other: &Path) -> bool {
    match (one.metadata(), other.metadata()) {
        (Ok(one), Ok(other)) => (one.dev(), one.ino()) == (other.dev(), other.ino()),
        _ => false,
    }
}

/// A file's name with an ending behind it.
pub fn with_ending(path: &Path, ending: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(ending);
    name.into()
}

/// A path for records: an absolute one.
pub fn text_of(path: &Path) -> Option<OsText> {
    std::path::absolute(path)
        .ok()
        .map(|path| OsText(path.into()))
}

/// A path of a record, for people.
pub fn shown(path: &Option<OsText>) -> String {
    let path = path.as_ref().map(|path| path.0.to_string_lossy());
    path.unwrap_or_default().into_owned()
}

/// Removes a log of this call that came to nothing: it would be in the way of the same command.
pub fn forget(log: &Path, error: &MinimizeError) {
    let of_baseline = matches!(
        error,
        MinimizeError::NotFailing { .. }
            | MinimizeError::NotPassing { .. }
            | MinimizeError::Alternating { .. }
            | MinimizeError::Oracle(_)
    );
    if of_baseline && holds_no_test(log) {
        // That it cannot be removed is no news beside the error.
        let _ = std::fs::remove_file(log);
    }
}

/// Whether nothing would be lost with this log.
fn holds_no_test(log: &Path) -> bool {
    let is_test = |(_, line): &(u64, Line)| matches!(line, Line::Test(_));
    Log::read(log).is_ok_and(|log| !log.lines.iter().any(is_test))
}
