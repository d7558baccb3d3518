//! Findings for CI servers: as a Markdown summary, as SARIF for code scanning, and as JUnit XML for
//! lists of tests. `junit.rs` is the only user of `quick-junit`.

mod junit;
mod markdown;
mod sarif;

pub use junit::junit;
pub use markdown::markdown;
pub use sarif::sarif;

use std::path::PathBuf;

use super::{Cause, GroupView, Trace, TriageGroup};
use crate::Kind;
use ddfuzz_triage::Severity;

/// All findings of a command, in the form that the CI formats share.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Findings {
    /// Name of the fuzzed program, for people.
    pub target: String,
    /// Summary of the findings in one line.
    pub summary: String,
    /// The groups found.
    pub groups: Vec<Finding>,
}

/// One group of crashes in a CI report.
#[derive(Clone, Debug, PartialEq)]
pub struct Finding {
    /// Kind of the group: crash, flaky crash, hang or out of memory.
    pub kind: Kind,
    /// Major key, its first 12 hex digits.
    pub major: String,
    /// Class of the crash, such as `segv`.
    pub class: String,
    /// Utility that crashed, in a study of many utilities.
    pub utility: Option<String>,
    /// Estimated severity of the group.
    pub severity: Severity,
    /// Reason for the estimated severity.
    pub severity_reason: String,
    /// Location of the crash in the user's code.
    pub place: Option<String>,
    /// Message and stacks of the crash.
    pub trace: Trace,
    /// Location of the crash as `file:line`, with the path from the debug information.
    pub source: Option<String>,
    /// Number of runs or inputs in the group.
    pub count: u64,
    /// Size of the input as found, in bytes; `None` if it was not reduced.
    pub size_before: Option<u64>,
    /// Size of the smallest known failing input, in bytes.
    pub size: u64,
    /// Claim of minimality, as a sentence.
    pub claim: Option<String>,
    /// Path of the smallest known failing input.
    pub file: PathBuf,
    /// Path of `reproduce.sh`.
    pub script: Option<PathBuf>,
    /// Whether `reproduce.sh` can also show the crash in gdb.
    pub has_gdb: bool,
    /// Whether the group is new; `None` if unknown.
    pub is_new: Option<bool>,
}

impl From<&GroupView> for Finding {
    fn from(view: &GroupView) -> Finding {
        let claim = view.minimized.as_ref().map(|_| view.claim());
        Finding {
            kind: view.kind,
            major: view.major.short(),
            class: view.class.to_string(),
            utility: view.utility.clone(),
            severity: view.severity,
            severity_reason: view.severity_reason.clone(),
            place: view.place.clone(),
            trace: view.trace.clone(),
            source: view.source.clone(),
            count: view.runs_seen,
            size_before: (view.size_before != view.size_after()).then_some(view.size_before),
            size: view.size_after(),
            claim,
            file: view.file.clone(),
            script: view.script.clone(),
            has_gdb: view.has_gdb,
            is_new: None,
        }
    }
}

impl From<&TriageGroup> for Finding {
    fn from(group: &TriageGroup) -> Finding {
        Finding {
            kind: group.kind,
            major: group.major.clone(),
            class: group.class.clone(),
            utility: None,
            severity: group.severity,
            severity_reason: group.severity_reason.clone(),
            place: group.frame.clone(),
            trace: group.trace.clone(),
            source: group.source.clone(),
            count: group.count,
            size_before: None,
            size: group.size,
            claim: None,
            file: group.representative.clone(),
            script: None,
            has_gdb: false,
            is_new: match (group.known, group.new) {
                (true, _) => Some(false),
                (false, new) => new,
            },
        }
    }
}

impl Finding {
    /// What it crashes of.
    pub fn cause(&self) -> Cause<'_> {
        Cause {
            kind: self.kind,
            major: &self.major,
            class: &self.class,
            utility: self.utility.as_deref(),
            severity: self.severity,
            severity_reason: &self.severity_reason,
            place: self.place.as_deref(),
            trace: &self.trace,
        }
    }

    /// Returns the kind of the group as a noun.
    fn what(&self) -> &'static str {
        match self.kind {
            Kind::Crash => "crash",
            Kind::Flaky => "flaky crash",
            Kind::Hang => "hang",
            Kind::Oom => "out-of-memory failure",
        }
    }

    /// Returns kind, class and location of the group in one line.
    fn title(&self) -> String {
        let place = match &self.place {
            Some(place) => format!(" in {place}"),
            None => String::new(),
        };
        let of = match &self.utility {
            Some(utility) => format!(" of {utility}"),
            None => String::new(),
        };
        super::text::printable(&format!("{} {}{of}{place}", self.what(), self.class))
    }

    /// Returns the title and the first line of the crash message.
    fn titled_message(&self) -> String {
        match self.trace.headline() {
            Some(headline) => format!("{}: {headline}", self.title()),
            None => self.title(),
        }
    }

    /// Formats the size, and the size before if the input was reduced.
    fn reduction(&self) -> String {
        match self.size_before {
            Some(before) => super::size::reduction(before, self.size),
            None => super::size::bytes(self.size),
        }
    }
}
