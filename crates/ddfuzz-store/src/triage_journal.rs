//! The journal of `triage` in an output directory (`triage.jsonl`).

use std::io::ErrorKind;

use serde::{Deserialize, Serialize};

use crate::{Kind, Reader, Store, StoreError, layout};
use ddfuzz_exec::{Ended, Way};
use ddfuzz_minimize::log::ContentHash;
use ddfuzz_model::files::{Appender, FileError};
use ddfuzz_triage::{Class, Confidence, Key, Severity};

/// The result of running one content on one target.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Triaged {
    /// Version of the line's schema.
    pub v: u32,
    /// The campaign whose counts it belongs to.
    pub campaign: String,
    /// The target: its program's content, arguments, environment, limits and the version of keys.
    pub target: ContentHash,
    /// The content.
    pub input: ContentHash,
    /// Its length, in bytes.
    pub size: u64,
    /// How the last try ended.
    pub ended: Ended,
    /// Tries that crashed so.
    pub hits: u32,
    /// Tries made.
    pub tries: u32,
    /// Whether a record was made of this very input. Else it was run for its keys only, and
    /// `crash` is that of another input with the same keys.
    pub examined: bool,
    /// The crash; null where there was none.
    pub crash: Option<CrashLine>,
}

impl Triaged {
    /// The version of the line's schema that is written.
    pub const VERSION: u32 = 1;
}

/// What is kept in memory of one crash: what the table of groups needs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CrashLine {
    /// Which kind of finding.
    pub kind: Kind,
    /// What kind of death.
    pub class: Class,
    /// Which bug.
    pub major: Key,
    /// Which way into it.
    pub minor: Key,
    /// For matching across rebuilds.
    pub stable: Option<Key>,
    /// How far the keys can be trusted.
    pub confidence: Confidence,
    /// An estimate.
    pub severity: Severity,
    /// Why that estimate.
    pub severity_reason: String,
    /// The way of execution.
    pub way: Way,
    /// Where in the user's code.
    pub place: Option<String>,
    /// What it said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// The same as `file:line`, where that is known, the path as the program has it.
    #[serde(default)]
    pub source: Option<String>,
    /// The GNU build id of the main program.
    pub build: Option<String>,
}

/// The lines of `triage.jsonl`, to be added to.
#[derive(Debug)]
pub struct TriageJournal(Appender);

impl Store {
    /// Opens the journal of `triage`, and returns its lines in the order they were written. A torn
    /// last line is dropped, and a damaged one is passed over: its input is run again.
    ///
    /// # Errors
    /// When the file cannot be read or written.
    pub fn triage_journal(&self) -> Result<(TriageJournal, Vec<Triaged>), StoreError> {
        let path = self.reader().root().join(layout::TRIAGED);
        let appender = Appender::open(&path)?;
        Ok((TriageJournal(appender), self.reader().triaged()?))
    }
}

impl Reader {
    /// The whole lines of the journal of `triage`, in the order they were written; none where there
    /// is no such journal. A torn or damaged line is passed over.
    ///
    /// # Errors
    /// When the file cannot be read.
    pub fn triaged(&self) -> Result<Vec<Triaged>, StoreError> {
        let path = self.root().join(layout::TRIAGED);
        let text = match std::fs::read(&path) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
            text => text.map_err(FileError::at("read", &path))?,
        };
        let lines = text.split(|byte| *byte == b'\n');
        let lines = lines.filter_map(|line| serde_json::from_slice(line).ok());
        Ok(lines.collect())
    }
}

impl TriageJournal {
    /// Adds a line, which survives the death of the process at once.
    ///
    /// # Errors
    /// When it cannot be written whole.
    pub fn add(&mut self, line: &Triaged) -> Result<(), StoreError> {
        let text = serde_json::to_vec(line).map_err(|error| StoreError::Unwritable {
            path: self.0.path().to_owned(),
            why: error.to_string(),
        })?;
        Ok(self.0.append(&text)?)
    }

    /// Writes all lines through to the device, so that they survive a power cut, too.
    ///
    /// # Errors
    /// When the system cannot.
    pub fn sync(&self) -> Result<(), StoreError> {
        Ok(self.0.sync()?)
    }
}
