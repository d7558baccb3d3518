//! Where the result and the log go.

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use super::Args;
use crate::cli::{Exit, Failure};

/// Where the result goes.
pub(super) enum Place {
    File { result: PathBuf, log: PathBuf },
    Directory(PathBuf),
}

impl Place {
    pub(super) fn choose(args: &Args) -> Result<Place, Failure> {
        let result = match &args.out {
            Some(out) if out.is_dir() || out.as_os_str().to_string_lossy().ends_with('/') => {
                return Ok(Place::Directory(out.clone()));
            }
            Some(out) => out.clone(),
            None => with_ending(&args.subject(), ".min"),
        };
        let log = args
            .log
            .clone()
            .unwrap_or_else(|| with_ending(&result, ".log.jsonl"));
        for file in [&result, &log] {
            let input = args.input.as_deref();
            if input.is_some_and(|input| is_same_file(file, input)) {
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
        if result == log || is_same_file(&result, &log) {
            let message = format!("{} would be result and log in one", log.display());
            return Err(Failure::usage(message)
                .path(&log)
                .hint("name another file with --log"));
        }
        Ok(Place::File { result, log })
    }

    /// Removes what `--force` allows to overwrite; only once there is something to put there.
    pub(super) fn clear(&self) -> Result<(), Failure> {
        let Place::File { result, log } = self else {
            return Ok(());
        };
        for file in [result, log] {
            if file.exists() {
                std::fs::remove_file(file).map_err(|e| Failure::file(file, "removing", &e))?;
            }
        }
        Ok(())
    }
}

/// Whether two names lead to one file.
pub(in crate::cli) fn is_same_file(one: &Path, other: &Path) -> bool {
    match (one.metadata(), other.metadata()) {
        (Ok(one), Ok(other)) => (one.dev(), one.ino()) == (other.dev(), other.ino()),
        _ => false,
    }
}

/// The path with this behind its name.
pub(super) fn with_ending(path: &Path, ending: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(ending);
    name.into()
}
