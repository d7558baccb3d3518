//! What ddfuzz found, in the folders where cargo-fuzz keeps such: `corpus/TARGET` and
//! `artifacts/TARGET`, by the names that libFuzzer gives.
//!
//! Localized here: `sha1`, by which libFuzzer names inputs.

use std::path::{Path, PathBuf};

use sha1::{Digest, Sha1};

use super::project::Project;
use crate::cli::{Failure, Output};
use crate::files::{atomic, folder, regular};
use crate::report::{size, text};
use crate::store::{Kind, Reader};

/// No input is longer, in bytes.
const LONGEST: u64 = 1 << 30;

/// libFuzzer's name of an input.
pub fn name_of(input: &[u8]) -> String {
    let digest = Sha1::digest(input);
    digest.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// What libFuzzer's names of failing inputs begin with; nothing stands for a flaky crash, which
/// `cargo fuzz run` does not show again.
fn prefix(kind: Kind, class: &str) -> Option<&'static str> {
    match kind {
        Kind::Crash if class.starts_with("lsan:") => Some("leak-"),
        Kind::Crash => Some("crash-"),
        Kind::Hang => Some("timeout-"),
        Kind::Oom => Some("oom-"),
        Kind::Flaky => None,
    }
}

/// Copies what the output directory has and the project does not: inputs of the corpus, each
/// group's input as it was found, and its reproducer. Nothing is overwritten. Says what it wrote;
/// gives the file of the first group's reproducer.
pub fn hand_back(
    out: &Path,
    project: &Project,
    name: &str,
    output: &Output,
) -> Result<Option<PathBuf>, Failure> {
    let reader = Reader::open(out)?;
    let corpus = project.corpus(name);
    let mut inputs = 0;
    for path in reader.corpus()? {
        if let Ok(bytes) = regular::read(&path, LONGEST) {
            inputs += u64::from(put(&corpus, &name_of(&bytes), &bytes)?);
        }
    }
    let shown = |folder: &Path| text::shell_word(folder);
    if inputs > 0 {
        let inputs = size::counted(inputs, "new input");
        output.say(&format!("wrote {inputs} to {}", shown(&corpus)));
    }
    let artifacts = project.artifacts(name);
    let written = reproducers(&reader, &artifacts)?;
    if written.count > 0 {
        let count = size::counted(written.count, "artifact");
        output.say(&format!("wrote {count} to {}", shown(&artifacts)));
    }
    Ok(written.first)
}

/// What was written to the folder of failing inputs.
#[derive(Debug, Default)]
pub struct Written {
    /// How many files are new there.
    pub count: u64,
    /// The file of the first group's reproducer.
    pub first: Option<PathBuf>,
}

/// Writes into `artifacts` what it does not have: each group's input as it was found, and its
/// reproducer.
pub fn reproducers(reader: &Reader, artifacts: &Path) -> Result<Written, Failure> {
    let mut written = Written::default();
    for kind in Kind::ALL {
        for group in reader.groups(kind)? {
            let Some(prefix) = prefix(kind, &group.record.class.0) else {
                continue;
            };
            for id in group.representatives() {
                let Some(entry) = reader.entry(&id)? else {
                    continue;
                };
                let original = entry.original_bytes()?;
                let sum = name_of(&original);
                let crash = format!("{prefix}{sum}");
                written.count += u64::from(put(artifacts, &crash, &original)?);
                let reproducer = entry.reproducer_bytes()?;
                let minimized = format!("minimized-from-{sum}");
                let mut least = crash;
                if reproducer.len() < original.len() {
                    written.count += u64::from(put(artifacts, &minimized, &reproducer)?);
                    least = minimized;
                }
                written.first.get_or_insert_with(|| artifacts.join(least));
            }
        }
    }
    Ok(written)
}

/// Writes a file that is not there yet; whether it was not.
fn put(dir: &Path, name: &str, bytes: &[u8]) -> Result<bool, Failure> {
    let path = dir.join(name);
    if path.symlink_metadata().is_ok() {
        return Ok(false);
    }
    let made = folder::create_all(dir).and_then(|()| atomic::create_new(&path, bytes));
    match made {
        Ok(()) => Ok(true),
        Err(error) if error.is_existing() => Ok(false),
        Err(error) => Err(error.into()),
    }
}
