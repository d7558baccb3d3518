//! The paths of an output directory: pure functions from names to paths.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use ddfuzz_triage::{Class, Keys};

/// The campaign file, by which a directory is known to be ours.
pub(super) const CAMPAIGN: &str = "ddfuzz.json";
/// The usual name of an output directory.
pub(super) const USUAL: &str = "ddfuzz-out";
/// The lock file of the writer.
pub(super) const LOCK: &str = ".lock";
/// What keeps an output directory out of the repository that it lies in, and what it holds.
pub(super) const IGNORE: (&str, &[u8]) = (".gitignore", b"*\n");
/// The campaign's checkpoint.
pub(super) const STATE: &str = "state.json";
/// The statistics of the campaign over time.
pub(super) const STATS: &str = "stats.jsonl";
/// The journal of `triage`.
pub(super) const TRIAGED: &str = "triage.jsonl";
/// The folder of inputs worth keeping.
pub(super) const CORPUS: &str = "corpus";
/// The folder of bundled programs.
pub(super) const PROGRAMS: &str = "bin";
/// A group's record.
pub(super) const GROUP: &str = "group.json";
/// The input as found.
pub(super) const ORIGINAL: &str = "original";
/// Triage's record.
pub(super) const CRASH: &str = "crash.json";
/// The reproducer.
pub(super) const MINIMIZED: &str = "minimized";
/// How the minimization ended.
pub(super) const OUTCOME: &str = "minimized.json";
/// What a harness with structured input makes of the reproducer.
pub(super) const DEBUG: &str = "debug.txt";
/// The minimization log.
pub(super) const LOG: &str = "log.jsonl";
/// The log of the minimization of the options, in a study of many programs.
pub(super) const OPTIONS_LOG: &str = "options.jsonl";
/// The folder of the results of studies of many programs.
pub(super) const STUDIES: &str = "studies";
/// The script that shows the crash.
pub(super) const REPRODUCE: &str = "reproduce.sh";

/// Hex digits of a key that name a folder.
const KEY_DIGITS: usize = 12;
/// Hex digits of a content's hash that name a folder or file.
const HASH_DIGITS: usize = 16;

/// The kinds of findings, never mixed in one folder.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// Reproducible crashes.
    Crash,
    /// Crashes that did not come again.
    Flaky,
    /// Runs over their time limit.
    Hang,
    /// Runs over their memory limit.
    Oom,
}

impl Kind {
    /// All kinds, in the order of reports.
    pub const ALL: [Kind; 4] = [Kind::Crash, Kind::Flaky, Kind::Hang, Kind::Oom];

    /// The kind of what is of this class and came again.
    pub fn of_class(class: &Class) -> Kind {
        match class.0.as_str() {
            "hang" => Kind::Hang,
            "oom" => Kind::Oom,
            _ => Kind::Crash,
        }
    }

    /// The name of the kind's folder.
    pub fn folder(self) -> &'static str {
        match self {
            Kind::Crash => "crashes",
            Kind::Flaky => "flaky",
            Kind::Hang => "hangs",
            Kind::Oom => "oom",
        }
    }
}

/// The name of a content: the first 16 hex digits of its blake3.
pub fn hash_of(bytes: &[u8]) -> String {
    blake3::hash(bytes).to_hex()[..HASH_DIGITS].to_owned()
}

/// Which entry: one input that ended in one way.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct EntryId {
    kind: Kind,
    major: String,
    minor: String,
    hash: String,
}

impl EntryId {
    /// The entry of `input` that ended with `keys`.
    pub fn of(kind: Kind, keys: &Keys, input: &[u8]) -> EntryId {
        EntryId {
            kind,
            major: keys.major.short(),
            minor: keys.minor.short(),
            hash: hash_of(input),
        }
    }

    /// The entry of this name; `None` where a part is not of the layout: 12, 12 and 16 lower-case
    /// hex digits.
    pub fn from_names(kind: Kind, major: &str, minor: &str, hash: &str) -> Option<EntryId> {
        let fits = is_key_name(major) && is_key_name(minor) && is_hash_name(hash);
        fits.then(|| EntryId {
            kind,
            major: major.to_owned(),
            minor: minor.to_owned(),
            hash: hash.to_owned(),
        })
    }

    /// The same input among the findings of another kind.
    pub fn among(&self, kind: Kind) -> EntryId {
        EntryId {
            kind,
            ..self.clone()
        }
    }

    /// The kind of finding.
    pub fn kind(&self) -> Kind {
        self.kind
    }

    /// The first 12 hex digits of the major key.
    pub fn major(&self) -> &str {
        &self.major
    }

    /// The first 12 hex digits of the minor key.
    pub fn minor(&self) -> &str {
        &self.minor
    }

    /// The first 16 hex digits of the blake3 of the input as found.
    pub fn hash(&self) -> &str {
        &self.hash
    }

    /// The entry's folder under the output directory `root`.
    pub fn folder(&self, root: &Path) -> PathBuf {
        group_folder(root, self.kind, &self.major)
            .join(&self.minor)
            .join(&self.hash)
    }

    /// The file of its input as found under the output directory `root`.
    pub fn original(&self, root: &Path) -> PathBuf {
        self.folder(root).join(ORIGINAL)
    }

    /// The file of its minimization log under the output directory `root`.
    pub fn log(&self, root: &Path) -> PathBuf {
        self.folder(root).join(LOG)
    }
}

/// The folder of a group; `major` are the 12 hex digits.
pub(super) fn group_folder(root: &Path, kind: Kind, major: &str) -> PathBuf {
    root.join(kind.folder()).join(major)
}

/// Whether this names the folder of a major or minor key.
pub(super) fn is_key_name(name: &str) -> bool {
    name.len() == KEY_DIGITS && is_hex(name)
}

/// Whether this names what a study came to: the campaign's id, in hex digits.
pub(super) fn is_study_name(name: &str) -> bool {
    name.strip_suffix(".json").is_some_and(is_hex)
}

/// Whether this names a content.
pub(super) fn is_hash_name(name: &str) -> bool {
    name.len() == HASH_DIGITS && is_hex(name)
}

fn is_hex(name: &str) -> bool {
    name.bytes()
        .all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}
