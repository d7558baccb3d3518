//! The JSON result of `min` (interface.md, "JSON results").

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::log::{OsText, StartLine};
use super::{Claim, Counts, Minimized, Proved, Rate};
use crate::triage::{Class, Key};

/// The crash that a result shows; all null for an interestingness test.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OutcomeRecord {
    /// What kind of death.
    pub class: Option<Class>,
    /// Which bug: the first 12 hex digits of the major key, as in every result.
    pub major: Option<String>,
    /// Which way into it, before: the first 12 hex digits of the minor key.
    pub minor: Option<String>,
}

/// A crash with another key that was found on the way.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SlipRecord {
    /// Which bug: the first 12 hex digits of the major key.
    pub major: String,
    /// Which way into it: the first 12 hex digits of the minor key.
    pub minor: String,
    /// Where its input was filed; null where it was not.
    pub file: Option<OsText>,
}

/// The result of minimizing one input. Sizes in bytes, paths absolute.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MinRecord {
    /// What is proven.
    pub claim: Claim,
    /// Size of the input.
    pub size_before: u64,
    /// Size of the result.
    pub size_after: u64,
    /// Tests by kind.
    pub tests: Counts,
    /// How much is proven.
    pub proved: Proved,
    /// Name of the search.
    pub search: String,
    /// The crash.
    pub outcome: OutcomeRecord,
    /// The minor key of the result, where one was taken.
    pub minor_after: Option<String>,
    /// How often the result failed when it was confirmed.
    pub rate: Rate,
    /// Wall time, in milliseconds.
    pub wall_ms: u64,
    /// The result file.
    pub output: Option<OsText>,
    /// The log.
    pub log: Option<OsText>,
    /// Other crashes found on the way.
    pub slips: Vec<SlipRecord>,
}

impl MinRecord {
    /// The record of a result; where output, log and slips were written is for the caller to fill
    /// in.
    pub fn new(minimized: &Minimized, start: &StartLine, wall: Duration) -> MinRecord {
        MinRecord {
            claim: minimized.claim,
            size_before: minimized.size_before,
            size_after: minimized.text.len() as u64,
            tests: minimized.counts,
            proved: minimized.proved,
            search: start.search.clone(),
            outcome: outcome_of(start),
            minor_after: minimized.minor_after.map(Key::short),
            rate: minimized.confirmed,
            wall_ms: wall_ms(wall),
            output: None,
            log: None,
            slips: minimized.slips.iter().map(slip_of).collect(),
        }
    }
}

/// The crash that a log holds.
pub(super) fn outcome_of(start: &StartLine) -> OutcomeRecord {
    let key = start.key.as_ref();
    OutcomeRecord {
        class: key.map(|key| key.class.clone()),
        major: key.map(|key| key.major.short()),
        minor: key.map(|key| key.minor.short()),
    }
}

/// A slip whose file is not known yet.
pub(super) fn slip_of(keys: &super::SlipKeys) -> SlipRecord {
    SlipRecord {
        major: keys.major.short(),
        minor: keys.minor.short(),
        file: None,
    }
}

pub(super) fn wall_ms(wall: Duration) -> u64 {
    wall.as_millis().try_into().unwrap_or(u64::MAX)
}
