//! The result of isolating or maximizing, and the JSON result of `diff` and `max` (interface.md, "JSON
//! results").

use ddfuzz_model::files::{Base64, OsText};
use serde::{Deserialize, Serialize};
use std::time::Duration;

use crate::isolate::sides::Differing;
use crate::log::{Goal, StartLine, Units};
use crate::minimized::{outcome_of, slip_of, wall_ms};
use crate::{Claim, Counts, OutcomeRecord, Proved, Rate, SlipKeys, SlipRecord};

/// Something about a result that its user must know.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IsolationWarning {
    /// The failing input did not fail in every one of its first runs; no claim is made.
    FlakyInput,
    /// The failing end did not fail in every one of its confirmations; no claim is made.
    FlakyFailing,
    /// The passing end did not pass in every one of its confirmations; no claim is made.
    NotPassing,
    /// A text failed in one run, and did not in another; no claim is made.
    Contradicted,
    /// Outcomes between the two ends are UNRESOLVED, so that several deltas are left: this many.
    Unresolved(u64),
    /// Single deltas whose test proves nothing, so that no claim is made: this many.
    Unproved(u64),
}

impl std::fmt::Display for IsolationWarning {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            IsolationWarning::FlakyInput => f.write_str("the input does not fail every time"),
            IsolationWarning::FlakyFailing => {
                f.write_str("the failing result does not fail every time")
            }
            IsolationWarning::NotPassing => f.write_str(
                "the passing result does not pass every time; perhaps its outcome was unresolved from the start",
            ),
            IsolationWarning::Contradicted => {
                f.write_str("the same bytes failed in one run and not in another")
            }
            IsolationWarning::Unresolved(deltas) => write!(
                f,
                "the difference is not a single delta but {deltas}: the outcomes of what lies between are unresolved"
            ),
            IsolationWarning::Unproved(tests) => {
                write!(f, "{tests} of the tests that the claim needs have no usable outcome")
            }
        }
    }
}

/// The result of a search that came to its end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Isolated {
    /// The passing end: maximizing, the largest part found that passes.
    pub passing: Vec<u8>,
    /// The failing end: maximizing, the whole failing input.
    pub failing: Vec<u8>,
    /// Where they differ, ascending.
    pub difference: Vec<Differing>,
    /// Deltas in the difference.
    pub deltas_left: u64,
    /// What is proven.
    pub claim: Claim,
    /// Tests that the claim needs, and how many of them prove it.
    pub proved: Proved,
    /// Tests by kind.
    pub counts: Counts,
    /// Runs of the failing input at the start.
    pub baseline: Rate,
    /// Runs of the passing end in fresh processes at the end, and how many passed.
    pub confirmed_passing: Rate,
    /// Runs of the failing end in fresh processes at the end, and how many failed; none where it
    /// is the failing input.
    pub confirmed_failing: Rate,
    /// The other bugs that candidates ran into, in the order of the first.
    pub slips: Vec<SlipKeys>,
    /// What the user must know.
    pub warnings: Vec<IsolationWarning>,
}

/// One place where both ends differ.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DifferingRecord {
    /// Start and end in bytes: of the passing input, or of the failing one where the passing one
    /// is empty.
    pub at: [u64; 2],
    /// The bytes there.
    pub removed: Base64,
    /// What stands there in the other end.
    pub inserted: Base64,
}

impl From<&Differing> for DifferingRecord {
    fn from(differing: &Differing) -> DifferingRecord {
        DifferingRecord {
            at: [differing.at.start as u64, differing.at.end as u64],
            removed: Base64(differing.removed.clone()),
            inserted: Base64(differing.inserted.clone()),
        }
    }
}

/// The result of maximizing or isolating. Sizes in bytes, paths absolute.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DifferenceResult {
    /// The file of the passing end.
    pub passing: Option<OsText>,
    /// The file of the failing end; for `max` the input.
    pub failing: Option<OsText>,
    /// Where they differ, ascending.
    pub difference: Vec<DifferingRecord>,
    /// Deltas in the difference.
    pub deltas: u64,
    /// What the deltas are; null where there was no first line.
    pub units: Option<Units>,
    /// The goal.
    pub goal: Option<Goal>,
    /// Whether PASS and FAIL were swapped.
    pub inverted: bool,
    /// Tests by kind.
    pub tests: Counts,
    /// What is proven.
    pub claim: Claim,
    /// How much is proven.
    pub proved: Proved,
    /// Size of the passing end.
    pub size_passing: u64,
    /// Size of the failing end.
    pub size_failing: u64,
    /// Name of the search.
    pub search: String,
    /// The crash.
    pub outcome: OutcomeRecord,
    /// How often the passing end passed, and the failing one failed, when they were confirmed.
    pub rate: Rate,
    /// Wall time, in milliseconds.
    pub wall_ms: u64,
    /// The result file: of the failing end, for `max` of the passing one.
    pub output: Option<OsText>,
    /// Other crashes found on the way.
    pub slips: Vec<SlipRecord>,
    /// The log.
    pub log: Option<OsText>,
}

impl DifferenceResult {
    /// The record of a result; where ends, log and slips were written is for the caller to fill in.
    pub fn new(isolated: &Isolated, start: &StartLine, wall: Duration) -> DifferenceResult {
        let record = start.difference.as_ref();
        let (passing, failing) = (isolated.confirmed_passing, isolated.confirmed_failing);
        DifferenceResult {
            passing: None,
            failing: None,
            difference: isolated.difference.iter().map(Into::into).collect(),
            deltas: isolated.deltas_left,
            units: record.map(|record| record.units),
            goal: record.map(|record| record.goal),
            inverted: record.is_some_and(|record| record.inverted),
            tests: isolated.counts,
            claim: isolated.claim,
            proved: isolated.proved,
            size_passing: isolated.passing.len() as u64,
            size_failing: isolated.failing.len() as u64,
            search: start.search.clone(),
            outcome: outcome_of(start),
            rate: Rate {
                hits: passing.hits + failing.hits,
                tries: passing.tries + failing.tries,
            },
            wall_ms: wall_ms(wall),
            output: None,
            log: None,
            slips: isolated.slips.iter().map(slip_of).collect(),
        }
    }
}
