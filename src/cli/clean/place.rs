//! Where the kept files go: never over what the user has.

use std::path::{Path, PathBuf};

use super::Args;
use crate::cli::{Exit, Failure};
use crate::corpus::Place;
use crate::corpus::listing::Layout;
use crate::files::{FileError, atomic};
use crate::report::clean::CleanResult;

/// Makes sure, before anything is run, that the kept files may be written where they go, and that
/// what is read is none of that.
pub fn check(args: &Args) -> Result<(), Failure> {
    if args.delete_old && !args.in_place {
        return Err(Failure::usage("--delete-old works only with --in-place")
            .hint("add --in-place, or omit --delete-old"));
    }
    let place = Place::of(args.out());
    let folder = place.corpus();
    if !place.may_replace(&folder)? {
        let message = format!(
            "{} contains files that were not written by a cleanup",
            folder.display()
        );
        return Err(Failure::new(Exit::Usage, "exists", message)
            .path(&folder)
            .hint("give another output directory with -o"));
    }
    let out = real(args.out());
    let in_out = |path: &Path| path.starts_with(&out);
    let onto = args.onto.as_deref().map(canonical).transpose()?;
    for corpus in &args.corpus {
        let real = canonical(corpus)?;
        if in_out(&real) {
            let message = format!("{} is in the output directory", corpus.display());
            return Err(Failure::usage(message)
                .path(corpus)
                .hint("give another output directory with -o"));
        }
        if onto.as_ref().is_some_and(|onto| real == *onto) {
            let message = format!("{} cannot be added to itself", corpus.display());
            return Err(Failure::usage(message).path(corpus));
        }
    }
    match &onto {
        Some(onto) if in_out(onto) => {
            let message = format!("--onto {} is in the output directory", onto.display());
            Err(Failure::usage(message)
                .path(onto)
                .hint("it would be replaced: give another output directory with -o"))
        }
        Some(onto) => check_onto(onto),
        None => Ok(()),
    }
}

/// Makes sure that what is added to `onto` is part of it then.
fn check_onto(onto: &Path) -> Result<(), Failure> {
    if !onto.is_dir() {
        let message = format!("--onto {} is not a directory", onto.display());
        return Err(Failure::usage(message).path(onto));
    }
    let layout = Layout::of(onto).map_err(|error| Failure::file(onto, "reading", &error))?;
    if matches!(layout, Layout::Plain | Layout::Honggfuzz) {
        return Ok(());
    }
    let message = format!(
        "--onto {} is a directory of {}, in which files with other names are not inputs",
        onto.display(),
        layout.name()
    );
    Err(Failure::usage(message)
        .path(onto)
        .hint("give a plain directory of inputs, such as corpus/ below it"))
}

pub(super) fn canonical(path: &Path) -> Result<PathBuf, Failure> {
    (path.canonicalize()).map_err(|error| Failure::file(path, "reading", &error))
}

/// Where the path leads, as far as it is there already.
pub(super) fn real(path: &Path) -> PathBuf {
    let path = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    let there = path.ancestors().find_map(|above| {
        let below = path.strip_prefix(above).ok()?;
        Some(above.canonicalize().ok()?.join(below))
    });
    there.unwrap_or(path)
}

/// Adds the kept files to another corpus; what is there stays as it is.
///
/// # Errors
/// When one cannot be written; those before it are there then.
pub fn add(result: &CleanResult, onto: &Path) -> Result<(), Failure> {
    for kept in &result.kept {
        let from = Path::new(&kept.file.0);
        let bytes = std::fs::read(from).map_err(FileError::at("read", from))?;
        let to = onto.join(crate::store::hash_of(&bytes));
        match atomic::create_new(&to, &bytes) {
            // An earlier call was killed behind it.
            Err(error) if error.is_existing() && std::fs::read(&to).is_ok_and(|it| it == bytes) => {
            }
            answer => answer?,
        }
    }
    Ok(())
}
