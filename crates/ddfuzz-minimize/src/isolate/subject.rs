//! The deltas between a passing and a failing input, and the texts that they build.

use ddfuzz_delta::{Change, Config, apply, changes};
use std::ops::Range;

use crate::log::Units;

/// A failing input and what is left out of it, or a passing and a failing one and the changes
/// between them.
#[derive(Clone, Debug)]
pub struct Subject {
    units: Units,
    passing: Vec<u8>,
    failing: Vec<u8>,
    /// `None` where the deltas are the bytes of the failing input.
    changes: Option<Vec<Change>>,
}

impl Subject {
    /// The deltas of this kind between two inputs, which are compared here: up to seconds for inputs
    /// that are nothing alike. Where they are [`Units::Bytes`], the passing
    /// input is the empty one, whatever `passing` says.
    pub fn new(units: Units, passing: &[u8], failing: &[u8]) -> Subject {
        let changes = match units {
            Units::Bytes => None,
            Units::Edits => Some(changes(passing, failing)),
            Units::EditBytes => {
                let edits = changes(passing, failing);
                Some(edits.iter().flat_map(Change::bytes).collect())
            }
        };
        let passing = match changes {
            Some(_) => passing.to_vec(),
            None => Vec::new(),
        };
        Subject {
            units,
            passing,
            failing: failing.to_vec(),
            changes,
        }
    }

    /// What the deltas are.
    pub fn units(&self) -> Units {
        self.units
    }

    /// The passing input.
    pub fn passing(&self) -> &[u8] {
        &self.passing
    }

    /// The failing input.
    pub fn failing(&self) -> &[u8] {
        &self.failing
    }

    /// Number of deltas.
    pub fn deltas(&self) -> usize {
        match &self.changes {
            Some(changes) => changes.len(),
            None => self.failing.len(),
        }
    }

    /// Writes the text of a configuration into `text`, which is cleared first: `∅` builds the
    /// passing input, all deltas the failing one.
    pub fn write_into(&self, config: &Config, text: &mut Vec<u8>) {
        match &self.changes {
            Some(changes) => {
                let applied = config.ranges().flat_map(|range| &changes[range]);
                apply(&self.passing, &self.failing, applied, text);
            }
            None => config.write_into(&self.failing, text),
        }
    }

    /// The text of a configuration.
    pub fn text(&self, config: &Config) -> Vec<u8> {
        let mut text = Vec::new();
        self.write_into(config, &mut text);
        text
    }

    /// What these deltas change: ranges of the passing input and what comes in their place; for
    /// bytes, ranges of the failing input that are left out.
    pub(super) fn changed(&self, deltas: &Config) -> Vec<Differing> {
        match &self.changes {
            Some(changes) => deltas
                .ranges()
                .flat_map(|range| joined(&changes[range]))
                .map(|change| Differing {
                    removed: self.passing[change.at.clone()].to_vec(),
                    inserted: self.failing[change.with].to_vec(),
                    at: change.at,
                })
                .collect(),
            None => deltas
                .ranges()
                .map(|at| Differing {
                    removed: self.failing[at.clone()].to_vec(),
                    inserted: Vec::new(),
                    at,
                })
                .collect(),
        }
    }
}

/// One place where both ends differ.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Differing {
    /// Where: a range of the passing input, or of the failing one where the passing one is empty;
    /// in bytes.
    pub at: Range<usize>,
    /// The bytes there.
    pub removed: Vec<u8>,
    /// What stands there in the other end.
    pub inserted: Vec<u8>,
}

/// Changes of single bytes that touch, as one.
fn joined(changes: &[Change]) -> Vec<Change> {
    let mut joined: Vec<Change> = Vec::new();
    for change in changes {
        match joined.last_mut() {
            Some(last) if last.at.end == change.at.start && last.with.end == change.with.start => {
                last.at.end = change.at.end;
                last.with.end = change.with.end;
            }
            _ => joined.push(change.clone()),
        }
    }
    joined
}
