//! The JSON result of `min` (interface.md, "JSON results").

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::log::{OsText, StartLine};
use super::{Claim, Counts, Minimized, Proved, Rate};
use ddfuzz_triage::{Class, Key};

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
    /// The call, where it was minimized too.
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    pub call: Option<CallResult>,
}

/// The call that shows a crash, minimized with its input: keys that `--args` and `--env-vars` add.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CallResult {
    /// The command line, the program first; `@@` stands for a file holding the input.
    pub args: Vec<OsText>,
    /// The variables: with `--env-vars` all that there are, else those set on top.
    pub env: Vec<(OsText, OsText)>,
    /// Arguments before.
    pub args_before: u64,
    /// Variables before, of those in `env`.
    pub env_before: u64,
    /// The call as one line for a shell, with the result in the input's place.
    pub command: String,
    /// A script that shows the crash; null for a bundled target.
    pub script: Option<OsText>,
    /// The minimizations, in their order.
    pub phases: Vec<PhaseRecord>,
}

/// One minimization of several in turn.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PhaseRecord {
    /// What was minimized: `input`, `args`, `argument` or `env`.
    pub part: String,
    /// Its units before: bytes, arguments, characters, variables.
    pub before: u64,
    /// Its units after.
    pub after: u64,
    /// What is proven of it while all else is as it was then.
    pub claim: Claim,
    /// How much is proven.
    pub proved: Proved,
    /// Tests by kind.
    pub tests: Counts,
    /// The log.
    pub log: Option<OsText>,
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
            call: None,
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
