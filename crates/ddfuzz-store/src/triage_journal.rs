//! The journal of `ddfuzz triage` (`triage.jsonl`): one line for each input that was run, so that
//! an interrupted triage continues where it stopped.

use serde::{Deserialize, Serialize};

use crate::{Kind, Reader, Store, StoreError, json, layout};
use ddfuzz_exec::{Ended, Way};
use ddfuzz_minimize::log::ContentHash;
use ddfuzz_model::files::Journal;
use ddfuzz_triage::{Class, Confidence, Key, Severity};

/// One line of the journal of `ddfuzz triage`: the result of running one input on one target.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Triaged {
    /// Version of the schema of this line in the journal of `ddfuzz triage` ([`Triaged::VERSION`]).
    pub v: u32,
    /// Id of the campaign for which the input was run.
    pub campaign: String,
    /// Hash of the target on which the input was run: program file, arguments, environment, limits
    /// and version of the keys.
    pub target: ContentHash,
    /// Hash of the input that `ddfuzz triage` ran.
    pub input: ContentHash,
    /// Size of the input that `ddfuzz triage` ran, in bytes.
    pub size: u64,
    /// How the last run of the input ended: exit status, signal, timeout or out of memory.
    pub ended: Ended,
    /// Number of runs of the input that ended in its crash.
    pub hits: u32,
    /// Number of times that `ddfuzz triage` ran the input.
    pub tries: u32,
    /// Whether a full crash record was made for this input. If false, only the keys of its crash
    /// were computed, and the other fields of `crash` come from the record of another input with
    /// the same keys.
    pub examined: bool,
    /// Summary of the crash; null if the input does not crash.
    pub crash: Option<CrashLine>,
    /// Whether `ddfuzz triage` also looked for memory leaks in those runs of the input that did not
    /// crash otherwise.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub leaks: bool,
}

impl Triaged {
    /// Current version of the schema of the lines in the journal of `ddfuzz triage`.
    pub const VERSION: u32 = 1;
}

/// Summary of a crash in a line of the journal: the fields that the table of groups needs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CrashLine {
    /// Kind of failure: crash, flaky crash, hang or out of memory.
    pub kind: Kind,
    /// Class of the crash, such as `segv` or `asan:heap-buffer-overflow`.
    pub class: Class,
    /// Major key of the crash: a hash that identifies the bug.
    pub major: Key,
    /// Minor key of the crash: a hash that identifies the call path to the bug.
    pub minor: Key,
    /// Stable key of the crash, made of function names, which stays the same when the program is
    /// rebuilt; null if the names are unknown.
    pub stable: Option<Key>,
    /// Confidence that the keys of the crash identify the bug.
    pub confidence: Confidence,
    /// Estimated severity of the crash: low, medium or high.
    pub severity: Severity,
    /// Reason for the estimated severity of the crash.
    pub severity_reason: String,
    /// Way in which the target was run when it crashed: fork server, `execve` and so on.
    pub way: Way,
    /// Location of the crash in the user's code: function and line, or module and offset; null if
    /// unknown.
    pub place: Option<String>,
    /// Error message of the program, its runtime or a sanitizer; omitted if there was none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// Location of the crash as `file:line`, from the debug information; `None` if unknown.
    #[serde(default)]
    pub source: Option<String>,
    /// GNU build id of the program that crashed; null if it has none.
    pub build: Option<String>,
}

/// The journal of `ddfuzz triage`, open for appending.
pub type TriageJournal = Journal<Triaged>;

impl Store {
    /// Opens the journal of `ddfuzz triage` for appending and returns its existing lines, oldest
    /// first. A torn last line is removed; a damaged line is skipped, so that its input runs again.
    pub fn triage_journal(&self) -> Result<(TriageJournal, Vec<Triaged>), StoreError> {
        let path = self.reader().root().join(layout::TRIAGED);
        let mut lines = Vec::new();
        let journal = Journal::open(&path, |_, line| lines.push(line))?;
        Ok((journal, lines))
    }
}

impl Reader {
    /// Reads the lines of the journal of `ddfuzz triage`, oldest first; empty without a journal.
    /// Damaged lines are skipped.
    pub fn triaged(&self) -> Result<Vec<Triaged>, StoreError> {
        let path = self.root().join(layout::TRIAGED);
        let text = json::bytes(&path)?.unwrap_or_default();
        let lines = text.split(|byte| *byte == b'\n');
        let lines = lines.filter_map(|line| serde_json::from_slice(line).ok());
        Ok(lines.collect())
    }
}
