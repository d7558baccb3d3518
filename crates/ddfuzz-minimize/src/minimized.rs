//! The result of a minimization: the input, the claim, the counts of tests, the warnings; and the JSON
//! result of `min` (interface.md, "JSON results").

use ddfuzz_delta::Hit;
use ddfuzz_triage::{Class, Key};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::time::Duration;

use crate::log::{OsText, Source, StartLine};
use crate::steadiness::odds;
use crate::{Claim, Proved, SlipKeys};

/// Something about a result that its user must know.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Warning {
    /// The empty input fails.
    EmptyInputFails,
    /// Not only the empty input fails, but whatever was tried: the target fails before it reads, or
    /// reads nothing.
    AnyInputFails,
    /// The input did not fail in every one of its first runs; no claim is made.
    FlakyInput {
        /// How often it did.
        rate: Rate,
        /// Runs of each candidate that did not fail.
        votes: u64,
    },
    /// The result did not fail in every one of its confirmations; no claim is made.
    FlakyResult {
        /// How often it did.
        rate: Rate,
    },
    /// What the search came to failed in none of its confirmations, so that the input as given is
    /// the result.
    Restored {
        /// Size of what it came to, in bytes.
        size: u64,
    },
    /// A text failed in one run, and did not in another; no claim is made.
    Contradicted,
    /// A budget ended before all values were tried; the claim stands.
    Values {
        /// Bytes of the result that may do as `0` as well.
        untried: u64,
    },
}

impl std::fmt::Display for Warning {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Warning::EmptyInputFails => f.write_str("the empty input fails, too, so it is the result"),
            Warning::AnyInputFails => f.write_str(
                "crashes on any input: the target crashes before it reads its input, or never reads \
                 it (if it reads a file, write @@ for the path of that file in its arguments)",
            ),
            Warning::Values { untried } => write!(
                f,
                "the budget ended before each byte was replaced by `0`: {untried} of the remaining \
                 bytes may be irrelevant"
            ),
            Warning::FlakyInput { rate, votes } => write!(
                f,
                "the failure is flaky: the input failed in {rate}. Each candidate was run up to {votes} \
                 times; a candidate that fails as often as the input is missed with a probability \
                 of 1 in {:.0}. The result is not claimed to be minimal",
                odds(*rate, *votes)
            ),
            Warning::FlakyResult { rate } => write!(
                f,
                "the result is flaky: it failed in {rate}, so it is not claimed to be minimal"
            ),
            Warning::Restored { size } => write!(
                f,
                "the smallest input that failed ({size} bytes) did not fail again, so the result is \
                 the input as it was given"
            ),
            Warning::Contradicted => f.write_str(
                "the same bytes failed in one run and not in another, so the result is not claimed to \
                 be minimal",
            ),
        }
    }
}

/// The result of a minimization that came to its end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Minimized {
    /// The smallest failing input found.
    pub text: Vec<u8>,
    /// What is proven of it.
    pub claim: Claim,
    /// How much is proven.
    pub proved: Proved,
    /// Size of the original input, in bytes.
    pub size_before: u64,
    /// Tests by kind.
    pub counts: Counts,
    /// Runs of the original input at the start.
    pub baseline: Rate,
    /// Runs of the result in fresh processes at the end.
    pub confirmed: Rate,
    /// The minor key of the result, where one was taken.
    pub minor_after: Option<Key>,
    /// The other bugs that candidates ran into, in the order of the first.
    pub slips: Vec<SlipKeys>,
    /// What the user must know.
    pub warnings: Vec<Warning>,
}

impl Minimized {
    /// How often the result failed, or else the input, where it did not each time; all of all where
    /// one text failed once and not again. `None` where all failed each time.
    pub fn flaky(&self) -> Option<Rate> {
        let of_result = self.warnings.iter().find_map(|warning| match warning {
            Warning::FlakyResult { rate } => Some(*rate),
            _ => None,
        });
        let of_others = || {
            self.warnings.iter().find_map(|warning| match warning {
                Warning::FlakyInput { rate, .. } => Some(*rate),
                Warning::Contradicted | Warning::Restored { .. } => Some(self.confirmed),
                _ => None,
            })
        };
        of_result.or_else(of_others)
    }
}

/// Tests of one minimization, each kind counted apart.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Counts {
    /// Tests that ran the target: `test` lines with source `run`.
    pub executed: u64,
    /// Answered because another configuration had the same text.
    pub cached: u64,
    /// Answered because the same configuration was tested before.
    pub repeated: u64,
    /// Answered by a predictor, without a run.
    pub predicted: u64,
    /// Run ahead in vain.
    pub speculative: u64,
    /// Runs aside from the search: axiom, baseline, confirmations, votes.
    pub checks: u64,
}

impl Counts {
    /// Counts a test by the source of its outcome; `hit` is the answer of the cache.
    pub(super) fn count(&mut self, source: Source, hit: Option<Hit>) {
        *match (source, hit) {
            (Source::Run, _) => &mut self.executed,
            (Source::Predicted, _) => &mut self.predicted,
            (Source::Cache, Some(Hit::Repeated(_))) => &mut self.repeated,
            (Source::Cache, _) => &mut self.cached,
        } += 1;
    }
}

/// How often a failure was seen again.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rate {
    /// Tries that failed so.
    pub hits: u64,
    /// Tries made.
    pub tries: u64,
}

impl std::fmt::Display for Rate {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} of {} runs", self.hits, self.tries)
    }
}

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
pub(super) fn slip_of(keys: &crate::SlipKeys) -> SlipRecord {
    SlipRecord {
        major: keys.major.short(),
        minor: keys.minor.short(),
        file: None,
    }
}

pub(super) fn wall_ms(wall: Duration) -> u64 {
    wall.as_millis().try_into().unwrap_or(u64::MAX)
}
