//! Names and paths of the files in an output directory: pure functions.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use ddfuzz_triage::{Class, Keys};

// The files of an output directory; `lib.rs` describes each.

/// Name of the campaign file, which marks a directory as an output directory of ddfuzz.
pub(super) const CAMPAIGN: &str = "ddfuzz.json";
/// Default name of an output directory, in the working directory.
pub(super) const DEFAULT_NAME: &str = "ddfuzz-out";
pub(super) const LOCK: &str = ".lock";
/// Name and content of the file that makes git ignore the output directory.
pub(super) const IGNORE: (&str, &[u8]) = (".gitignore", b"*\n");
pub(super) const STATE: &str = "state.json";
pub(super) const STATS: &str = "stats.jsonl";
/// File name of the record of the code that a campaign has reached.
pub(super) const REACHED_CODE: &str = "code.json";
pub(super) const TRIAGED: &str = "triage.jsonl";
pub(super) const CORPUS: &str = "corpus";
/// Folder in the output directory for the bundled programs that `reproduce.sh` scripts run.
pub(super) const PROGRAMS: &str = "bin";
pub(super) const GROUP: &str = "group.json";
pub(super) const ORIGINAL: &str = "original";
pub(super) const CRASH: &str = "crash.json";
pub(super) const MINIMIZED: &str = "minimized";
/// Name of the file with the result of the minimization of a stored input.
pub(super) const OUTCOME: &str = "minimized.json";
/// Name of the file with the minimized input as parsed by the harness, in Rust's `Debug` format.
pub(super) const DEBUG: &str = "debug.txt";
pub(super) const LOG: &str = "log.jsonl";
/// Name of the journal of `ddfuzz check` in an output directory.
pub(super) const CHECKS: &str = "checks.jsonl";
/// Name of the file in an entry's folder that lists minimizations whose results no longer fail
/// (with a newer build of the program), by the hashes of their logs. A merge does not make such a
/// result the current one.
pub(super) const PASSING: &str = "passing.json";
/// Name of the file with the text of an explanation of the failure, which `ddfuzz explain` writes.
pub(super) const EXPLANATION: &str = "explanation.txt";
/// Name of the file with the explanation of a failure, by `ddfuzz explain`, as JSON.
pub(super) const EXPLANATION_RECORD: &str = "explanation.json";
pub(super) const EXPLANATION_FILES: [&str; 4] = [
    "explanation.html",
    EXPLANATION_RECORD,
    EXPLANATION,
    "explanation.passing",
];
/// Name of the file with the log of the minimization of a utility's command-line options.
pub(super) const OPTIONS_LOG: &str = "options.jsonl";
pub(super) const STUDIES: &str = "studies";
pub(super) const REPRODUCE: &str = "reproduce.sh";

/// Number of hex digits of a major or minor key in a folder name.
const KEY_DIGITS: usize = 12;
/// Number of hex digits of the hash of an input or program in a file name.
const HASH_DIGITS: usize = 16;

/// Kind of a stored failure: crash, flaky crash, hang, or out of memory. Each kind has its own
/// folder in the output directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// The failure is a reproducible crash.
    Crash,
    /// The failure is a crash that did not occur again when the input was re-run.
    Flaky,
    /// The failure is a run over the time limit.
    Hang,
    /// The failure is a run over the memory limit.
    Oom,
}

impl Kind {
    /// All kinds of stored failures, in the order in which reports list them.
    pub const ALL: [Kind; 4] = [Kind::Crash, Kind::Flaky, Kind::Hang, Kind::Oom];

    /// Returns the kind of a reproducible failure of the class `class`: hang, out of memory or, for
    /// all other classes, crash.
    pub fn of_class(class: &Class) -> Kind {
        match class.0.as_str() {
            "hang" => Kind::Hang,
            "oom" => Kind::Oom,
            _ => Kind::Crash,
        }
    }

    /// Returns the kind of failure whose limits a run must have to fail in this way: this kind
    /// itself or, for `Flaky`, the kind to which the crash class `class` belongs. So a flaky hang
    /// is run with the time limit of a hang.
    pub(crate) fn of_limits(self, class: &Class) -> Kind {
        match self {
            Kind::Flaky => Kind::of_class(class),
            kind => kind,
        }
    }

    /// Returns the kind as a noun for reports: `crash`, `flaky crash`, `hang`, `out-of-memory
    /// failure`.
    pub(crate) fn noun(self) -> &'static str {
        match self {
            Kind::Crash => "crash",
            Kind::Flaky => "flaky crash",
            Kind::Hang => "hang",
            Kind::Oom => "out-of-memory failure",
        }
    }

    /// Returns the name of the kind's folder in the output directory: `crashes`, `flaky`, `hangs`
    /// or `oom`.
    pub fn folder(self) -> &'static str {
        match self {
            Kind::Crash => "crashes",
            Kind::Flaky => "flaky",
            Kind::Hang => "hangs",
            Kind::Oom => "oom",
        }
    }
}

/// Returns the file name under which an input or program is stored: the first 16 hex digits of the
/// blake3 hash of its bytes.
pub fn hash_of(bytes: &[u8]) -> String {
    blake3::hash(bytes).to_hex()[..HASH_DIGITS].to_owned()
}

/// Id of an entry, that is, of a stored input: the input's hash together with the kind and the keys
/// of its crash.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct EntryId {
    kind: Kind,
    major: String,
    minor: String,
    hash: String,
}

impl EntryId {
    /// Makes the id of the entry for `input`, whose run ended in a crash with these keys.
    pub fn of(kind: Kind, keys: &Keys, input: &[u8]) -> EntryId {
        EntryId {
            kind,
            major: keys.major.short(),
            minor: keys.minor.short(),
            hash: hash_of(input),
        }
    }

    /// Makes an entry's id from its kind and the names of its folders: first digits of the major
    /// key, of the minor key, and of the hash of the input. `None` unless these are 12, 12 and 16
    /// lower-case hex digits.
    pub fn from_names(kind: Kind, major: &str, minor: &str, hash: &str) -> Option<EntryId> {
        let fits = is_key_name(major) && is_key_name(minor) && is_hash_name(hash);
        fits.then(|| EntryId {
            kind,
            major: major.to_owned(),
            minor: minor.to_owned(),
            hash: hash.to_owned(),
        })
    }

    /// Returns the id of an entry (stored input) with the same input and keys as this one, but of
    /// the kind `kind`, such as `flaky`.
    pub fn among(&self, kind: Kind) -> EntryId {
        EntryId {
            kind,
            ..self.clone()
        }
    }

    /// Returns the kind of failure in the entry's id: crash, flaky crash, hang or out of memory.
    pub fn kind(&self) -> Kind {
        self.kind
    }

    /// Returns the major key (which identifies the bug) in the entry's id, its first 12 hex digits.
    pub fn major(&self) -> &str {
        &self.major
    }

    /// Returns the minor key (which identifies the call path to the bug) in the entry's id, its
    /// first 12 hex digits.
    pub fn minor(&self) -> &str {
        &self.minor
    }

    /// Returns the first 16 hex digits of the blake3 hash of the entry's input as found, before
    /// minimization.
    pub fn hash(&self) -> &str {
        &self.hash
    }

    /// Returns the path of the folder, in the output directory `root`, in which the entry's files
    /// are stored.
    pub fn folder(&self, root: &Path) -> PathBuf {
        group_folder(root, self.kind, &self.major)
            .join(&self.minor)
            .join(&self.hash)
    }

    /// Returns the path, in the output directory `root`, of the entry's input as found, before
    /// minimization.
    pub fn original(&self, root: &Path) -> PathBuf {
        self.folder(root).join(ORIGINAL)
    }

    /// Returns the path, in the output directory `root`, of the log of the minimization of the
    /// entry's input.
    pub fn log(&self, root: &Path) -> PathBuf {
        self.folder(root).join(LOG)
    }
}

/// Returns the folder of a group in the output directory `root`; `major` is the first 12 hex digits
/// of the group's major key.
pub(super) fn group_folder(root: &Path, kind: Kind, major: &str) -> PathBuf {
    root.join(kind.folder()).join(major)
}

/// Returns whether `name` can be the folder of a major or minor key: 12 lower-case hex digits.
pub(super) fn is_key_name(name: &str) -> bool {
    name.len() == KEY_DIGITS && is_hex(name)
}

/// Returns whether `name` can be the name of the file with a study's result: a campaign id in
/// lower-case hex digits, then `.json`.
pub(super) fn is_study_name(name: &str) -> bool {
    name.strip_suffix(".json").is_some_and(is_hex)
}

/// Returns whether `name` can be a file or folder name made of the hash of a stored input or
/// program: 16 lower-case hex digits.
pub(super) fn is_hash_name(name: &str) -> bool {
    name.len() == HASH_DIGITS && is_hex(name)
}

fn is_hex(name: &str) -> bool {
    name.bytes()
        .all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}
