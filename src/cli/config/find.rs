//! Which file of settings counts, whether it may be trusted, and its text.

use std::fs::Metadata;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use nix::unistd::{Uid, User};

use super::refused;
use crate::cli::Failure;
use crate::files::regular::{self, Unread};

/// Its name in a project directory.
pub const NAME: &str = "ddfuzz.toml";
/// More is no file of settings, in bytes.
const LIMIT: u64 = 1 << 20;

/// The file of `folder`, or of the nearest directory above it that has one.
pub fn nearest_above(folder: &Path) -> Option<PathBuf> {
    let named = folder.ancestors().map(|one| one.join(NAME));
    // A link that leads nowhere is one that should be heard of.
    named
        .into_iter()
        .find(|path| path.symlink_metadata().is_ok())
}

/// The text of the file, if nobody else could have put it there.
pub fn text_of(path: &Path) -> Result<String, Failure> {
    let bytes = regular::read(path, LIMIT).map_err(|error| unread(path, &error))?;
    trust(path)?;
    String::from_utf8(bytes).map_err(|error| {
        let read = error
            .as_bytes()
            .iter()
            .take(error.utf8_error().valid_up_to());
        let line = 1 + read.filter(|byte| **byte == b'\n').count();
        refused(path, line, "it is not UTF-8 text")
    })
}

fn unread(path: &Path, error: &Unread) -> Failure {
    let why = match error {
        Unread::Missing => "there is no such file".to_owned(),
        Unread::TooLarge { limit } => {
            format!("it is larger than {limit} bytes, the limit for a settings file")
        }
        Unread::NotAFile(kind) => format!("it is {kind}, not a settings file"),
        Unread::Refused(why) => format!("it cannot be read: {why}"),
    };
    untrusted(path, &why)
}

/// A file that says which program to run is as good as a program: who could have written it could
/// have it run. A fuzzed target may write what everybody may, and what belongs to `nobody`.
fn trust(path: &Path) -> Result<(), Failure> {
    let real = path
        .canonicalize()
        .map_err(|error| Failure::file(path, "finding", &error))?;
    let facts = |path: &Path| {
        path.metadata()
            .map_err(|error| Failure::file(path, "reading", &error))
    };
    let file = facts(&real)?;
    if let Some(why) = who_else(&file, &file) {
        return Err(untrusted(path, &format!("the file {why}")));
    }
    // That of the link as well: it could be led elsewhere.
    for folder in [path.parent(), real.parent()].into_iter().flatten() {
        let folder = match folder.as_os_str().is_empty() {
            true => Path::new("."),
            false => folder,
        };
        if let Some(why) = who_else(&facts(folder)?, &file) {
            return Err(untrusted(path, &format!("its directory {why}")));
        }
    }
    Ok(())
}

/// Who besides the user may change a file, or what stands in a directory; `file` is what is
/// trusted by it.
fn who_else(facts: &Metadata, file: &Metadata) -> Option<&'static str> {
    let mode = facts.permissions().mode();
    let us = Uid::effective().as_raw();
    let own = |facts: &Metadata| facts.uid() == us || facts.uid() == 0;
    // In a sticky directory only owners replace files.
    let kept = facts.is_dir() && mode & 0o1000 != 0 && own(facts) && own(file);
    if mode & 0o002 != 0 && !kept {
        return Some(match own(facts) {
            true => "can be written by everybody, including a fuzzed program",
            false => "belongs to another user and can be written by everybody",
        });
    }
    let nobody = User::from_name("nobody").ok().flatten();
    let nobody = nobody.map_or(65534, |user| user.uid.as_raw());
    let foreign = facts.uid() == nobody && us != nobody;
    foreign.then_some("belongs to the user nobody, as whom fuzzed programs run")
}

fn untrusted(path: &Path, why: &str) -> Failure {
    refused(path, 0, why).hint(
        "check the path, and that only you can write to the file and its directory; --config \
         FILE reads another file, --no-config reads none",
    )
}
