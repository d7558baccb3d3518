//! The result of isolating or maximizing, and the JSON result of `diff` and `max`
//! (docs/src/exit-codes.md).

use ddfuzz_model::files::{Base64, OsText};
use serde::{Deserialize, Serialize};
use std::time::Duration;

use crate::isolate::sides::Differing;
use crate::log::{Goal, StartLine, Units};
use crate::minimized::{outcome_of, slip_of, wall_ms};
use crate::{Claim, Counts, MinimizedCrash, Proved, Rate, SlipKeys, SlipRecord};

/// A warning about a result of `diff` or `max`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IsolationWarning {
    /// The failing input did not fail in each of its first runs, so nothing is claimed.
    FlakyInput,
    /// The failing side did not fail in each of its confirmations, so nothing is claimed.
    FlakyFailing,
    /// The passing side did not pass in each of its confirmations, so nothing is claimed.
    NotPassing,
    /// The same text failed in one run and did not fail in another, so nothing is claimed.
    Contradicted,
    /// Candidates between the passing and the failing side are UNRESOLVED, so that the two sides
    /// differ by this number of deltas (bytes or edits) instead of one.
    Unresolved(u64),
    /// The tests of single deltas (bytes or edits) on which the claim rests have no usable outcome
    /// for this number of deltas, so nothing is claimed.
    Unproved(u64),
    /// The budget of time ended before the search, so the two sides are the two inputs.
    Unsearched,
    /// The budget of time ended before both sides were confirmed, so nothing is claimed.
    Unconfirmed,
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
            IsolationWarning::Unsearched => f.write_str(
                "the time budget ended before the search, so the result is the two inputs as they were given",
            ),
            IsolationWarning::Unconfirmed => f.write_str(
                "the time budget ended before the result was run again as often as a claim needs",
            ),
            IsolationWarning::Unproved(tests) => {
                write!(f, "{tests} of the tests that the claim needs have no usable outcome")
            }
        }
    }
}

/// The result of a `diff` or `max` search between a passing and a failing input: the two sides
/// (texts), and what is claimed of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Isolated {
    /// The text of the passing side; for `max`, the largest part found that passes.
    pub passing: Vec<u8>,
    /// The text of the failing side; for `max`, the whole failing input.
    pub failing: Vec<u8>,
    /// The places in which the passing and the failing side differ, ascending.
    pub difference: Vec<Differing>,
    /// Number of deltas (bytes or edits) in which the passing and the failing side differ.
    pub deltas_left: u64,
    /// Property of both sides that the log proves, such as that they differ by a 1-minimal set of
    /// deltas (bytes or edits).
    pub claim: Claim,
    /// Number of tests that the claim needs, and number of those whose outcome proves it.
    pub proved: Proved,
    /// Numbers of the search's tests, by how each was answered: by a run, the cache, or a
    /// predictor.
    pub counts: Counts,
    /// How often the failing input failed, in its runs at the start.
    pub baseline: Rate,
    /// How often the passing side passed, in its confirmations in fresh processes.
    pub confirmed_passing: Rate,
    /// How often the failing side failed, in its confirmations in fresh processes; no runs if the
    /// side is the failing input itself.
    pub confirmed_failing: Rate,
    /// Keys of the crashes of other bugs that candidates had, in the order of discovery.
    pub slips: Vec<SlipKeys>,
    /// Warnings about the result for the user, such as that the failure is flaky.
    pub warnings: Vec<IsolationWarning>,
}

/// A place in which the passing and the failing side differ, for JSON.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DifferingRecord {
    /// Start and end offset of the place, in bytes: in the passing input, or in the failing input
    /// if the deltas are its bytes.
    pub at: [u64; 2],
    /// Bytes in the range `at` of one side, which the other side lacks.
    pub removed: Base64,
    /// Bytes of the other side that take the place of `removed`; may be empty.
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

/// JSON result of `diff` and `max`. Sizes are in bytes, paths are absolute.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DifferenceResult {
    /// Path of the file with the text of the passing side; null if it was not written to a file.
    pub passing: Option<OsText>,
    /// File with the text of the failing side; for `max`, the failing input itself.
    pub failing: Option<OsText>,
    /// The places in which the passing and the failing side differ, ascending.
    pub difference: Vec<DifferingRecord>,
    /// Number of deltas (bytes or edits) in which the passing and the failing side differ.
    pub deltas: u64,
    /// Kind of the deltas (bytes, edits, or bytes of edits); null if the log has no first line.
    pub units: Option<Units>,
    /// Whether the search maximized or isolated; null if the log has no first line.
    pub goal: Option<Goal>,
    /// Whether PASS and FAIL were swapped, so that an input without the crash counts as failing.
    pub inverted: bool,
    /// Numbers of the search's tests, by how each was answered: by a run, the cache, or a
    /// predictor.
    pub tests: Counts,
    /// Property of both sides that the log proves, such as that they differ by a 1-minimal set of
    /// deltas (bytes or edits).
    pub claim: Claim,
    /// Number of tests that the claim needs, and number of those whose outcome proves it.
    pub proved: Proved,
    /// Size of the passing side (text), in bytes.
    pub size_passing: u64,
    /// Size of the failing side (text), in bytes.
    pub size_failing: u64,
    /// Name of the search (delta debugging algorithm), such as `dd`.
    pub search: String,
    /// The crash that the failing side shows.
    pub outcome: MinimizedCrash,
    /// How often the confirmations of both sides had the expected outcome: PASS of the passing
    /// side, FAIL of the failing one.
    pub rate: Rate,
    /// Wall time of the search, in milliseconds.
    pub wall_ms: u64,
    /// The result file: the failing side, or for `max` the passing one.
    pub output: Option<OsText>,
    /// Crashes of other bugs (with other crash keys) that candidates had.
    pub slips: Vec<SlipRecord>,
    /// File of the log of the search.
    pub log: Option<OsText>,
}

impl DifferenceResult {
    /// Makes the JSON result of a search between a passing and a failing input. `start` is the
    /// start line of its log, `wall` its wall time. The caller fills in the files of both sides,
    /// the log and the files of slips (crashes of other bugs).
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
