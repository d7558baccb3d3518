//! What the screen keeps of one group.

use crate::report::GroupView;
use crate::report::text::printable;
use crate::store::{EntryId, Kind};
use crate::triage::Severity;

/// One group, its texts cleaned for a terminal.
#[derive(Clone, Debug, PartialEq)]
pub struct Group {
    /// The kind of finding.
    pub kind: Kind,
    /// The first digits of its major key.
    pub key: String,
    /// The entry that it is shown through; `None` where its folder does not say which.
    pub entry: Option<EntryId>,
    /// What kind of death.
    pub class: String,
    /// The estimate, with its reason.
    pub severity: String,
    /// Where in the user's code; `-` where nothing is known.
    pub place: String,
    /// Runs that ended so.
    pub seen: u64,
    /// Size of the input as found, in bytes.
    pub size_before: u64,
    /// Size of the best input known, in bytes.
    pub size: u64,
    /// Whether it has become smaller since the screen knows it.
    pub shrinks: bool,
    /// Tests that its minimization executed, where that has ended.
    pub tests: Option<u64>,
    /// The claim in short, where the minimization has ended.
    pub claim: Option<String>,
    /// The claim as a sentence.
    pub sentence: String,
    /// The file of the best input.
    pub file: String,
}

impl Group {
    /// What there is to show of `view`.
    pub fn of(view: &GroupView) -> Group {
        let hash = view.file.parent().and_then(|folder| folder.file_name());
        let entry = hash.and_then(|hash| {
            let (major, minor) = (view.major.short(), view.minor.short());
            EntryId::from_names(view.kind, &major, &minor, &hash.to_string_lossy())
        });
        let severity = match view.severity {
            Severity::Low => "low",
            Severity::Medium => "medium",
            Severity::High => "high",
        };
        Group {
            kind: view.kind,
            key: view.major.short(),
            entry,
            class: printable(&view.class.to_string()),
            severity: printable(&format!("{severity} ({})", view.severity_reason)),
            place: printable(view.place.as_deref().unwrap_or("-")),
            seen: view.runs_seen,
            size_before: view.size_before,
            size: view.size_after(),
            shrinks: false,
            tests: view.tests_executed(),
            claim: view.claim_word().map(printable),
            sentence: printable(&view.claim()),
            file: printable(&view.file.to_string_lossy()),
        }
    }

    /// Whether both are the same group.
    pub fn is(&self, other: &Group) -> bool {
        self.kind == other.kind && self.key == other.key
    }

    /// Takes over what is newer in `now`. A group is shown through the entry that is worked on; once
    /// that has a result, another one takes its place only with a smaller result.
    pub fn update(&mut self, now: Group) {
        let is_smaller = now.claim.is_some() && now.size < self.size;
        if self.claim.is_some() && now.entry != self.entry && !is_smaller {
            self.seen = now.seen;
            return;
        }
        let shrinks = self.shrinks || now.entry == self.entry && now.size < self.size;
        *self = Group { shrinks, ..now };
    }

    /// The claim, or how far its minimization is.
    pub fn standing(&self) -> &str {
        match &self.claim {
            Some(claim) => claim,
            None if self.shrinks => "shrinking",
            None => "-",
        }
    }
}
