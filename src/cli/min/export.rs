//! `--export-test FILE`: an interestingness test for the crash, which other reducers can use.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use super::Args;
use crate::cli::results::{Place, is_same_file};
use crate::cli::{Exit, Failure};
use crate::exec::{Target, Way};
use crate::files::atomic;
use crate::report::export::{Taking, interestingness_test};
use crate::triage::Crash;

/// Makes sure that the file may be written, before anything is run.
pub(super) fn check(args: &Args, place: &Place) -> Result<(), Failure> {
    let Some(file) = &args.export_test else {
        return Ok(());
    };
    let mut taken: Vec<&Path> = args.input.as_deref().into_iter().collect();
    if let Place::File { results, log } = place {
        taken.extend(results.iter().chain([log]).map(PathBuf::as_path));
    }
    if taken
        .iter()
        .any(|one| *one == file || is_same_file(one, file))
    {
        let message = format!("{} is the input, the result or the log", file.display());
        return Err(Failure::usage(message)
            .path(file)
            .hint("give another file with --export-test"));
    }
    if file.is_dir() || (file.exists() && !args.results.force && !args.results.resume) {
        return Err(exists(file));
    }
    Ok(())
}

/// Writes the test for `crash` where it is asked for. With `--resume`, one that is there stays.
pub(super) fn write(args: &Args, crash: &Crash, target: &Target, way: Way) -> Result<(), Failure> {
    let Some(file) = &args.export_test else {
        return Ok(());
    };
    let name = args.input.as_deref().and_then(Path::file_name);
    let name = name.unwrap_or(OsStr::new("input"));
    let (class, major) = (&crash.class, crash.keys.major.short());
    let built = std::env::current_exe().unwrap_or_else(|_| "ddfuzz".into());
    let text = interestingness_test(Taking::Anywhere, name, class, &major, (target, way), &built);
    let written = match args.results.force {
        true => atomic::write_program(file, &text),
        false => match atomic::create_new_program(file, &text) {
            Err(error) if error.is_existing() && args.results.resume => Ok(()),
            Err(error) if error.is_existing() => return Err(exists(file)),
            written => written,
        },
    };
    written.map_err(|error| Failure::new(Exit::Usage, "output", error).path(file))
}

fn exists(file: &Path) -> Failure {
    let message = format!("{} exists already", file.display());
    Failure::new(Exit::Usage, "exists", message)
        .path(file)
        .hint("overwrite it with --force, or give another file with --export-test")
}
