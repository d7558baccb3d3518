//! Results for CI servers, one file a format: a summary in Markdown, SARIF for code scanning, JUnit
//! for lists of tests.
//!
//! The only user of `quick-junit` (`junit.rs`).

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

/// What a command has found.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Findings {
    /// The program that was run, as people know it.
    pub target: String,
    /// What it came to, in a line.
    pub summary: String,
    /// The groups.
    pub groups: Vec<Finding>,
}

/// One group among them.
#[derive(Clone, Debug, PartialEq)]
pub struct Finding {
    /// The kind of finding.
    pub kind: Kind,
    /// The first 12 hex digits of the major key.
    pub major: String,
    /// What kind of death.
    pub class: String,
    /// Which utility, in a study of many.
    pub utility: Option<String>,
    /// The group's estimate.
    pub severity: Severity,
    /// Why that estimate.
    pub severity_reason: String,
    /// Where in the user's code.
    pub place: Option<String>,
    /// What it said, and its stacks.
    pub trace: Trace,
    /// The same as `file:line`, where that is known, the path as the program has it.
    pub source: Option<String>,
    /// Runs or inputs that ended so.
    pub count: u64,
    /// Size of the input as found, in bytes, where it was reduced.
    pub size_before: Option<u64>,
    /// Size of the best input known, in bytes.
    pub size: u64,
    /// What is claimed of that input.
    pub claim: Option<String>,
    /// The file of the best input known.
    pub file: PathBuf,
    /// The script that shows it.
    pub script: Option<PathBuf>,
    /// Whether that script shows it in gdb, too.
    pub has_gdb: bool,
    /// Whether it is new; `None` where that cannot be said.
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

    /// What it is, without where.
    fn what(&self) -> &'static str {
        match self.kind {
            Kind::Crash => "crash",
            Kind::Flaky => "flaky crash",
            Kind::Hang => "hang",
            Kind::Oom => "out-of-memory failure",
        }
    }

    /// What it is and where, in one line.
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

    /// The same with the first line of what it said.
    fn titled_message(&self) -> String {
        match self.trace.headline() {
            Some(headline) => format!("{}: {headline}", self.title()),
            None => self.title(),
        }
    }

    /// Its size, and how it came to that.
    fn reduction(&self) -> String {
        match self.size_before {
            Some(before) => super::size::reduction(before, self.size),
            None => super::size::bytes(self.size),
        }
    }
}
