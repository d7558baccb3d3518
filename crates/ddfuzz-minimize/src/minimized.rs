//! The result of a minimization, its counts and warnings, and the JSON result of `min`
//! (docs/src/exit-codes.md).

use ddfuzz_delta::{Full, Hit};
use ddfuzz_triage::{Class, Key};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::time::Duration;

use crate::log::{OsText, Source, StartLine};
use crate::steadiness::odds;
use crate::{Claim, Proved, SlipKeys};

/// A warning about the result of a minimization.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Warning {
    /// The empty input fails, too, so it is the result.
    EmptyInputFails,
    /// Every tested input fails: the target crashes before it reads its input, does not read it, or
    /// lacks something that it needs.
    AnyInputFails,
    /// The empty input fails, too, so it is the result. Its run exceeds the limit on memory, as
    /// that of the original input does; the target may need more memory than this for any input.
    MemoryLimit {
        /// Limit on the memory of a run, in bytes.
        limit: u64,
    },
    /// The input did not fail in each of its first runs, so nothing is claimed.
    FlakyInput {
        /// How often the original input failed in its first runs, and the number of these runs.
        rate: Rate,
        /// Number of runs without a failure after which a candidate of the flaky input counts as
        /// not failing.
        votes: u64,
    },
    /// The result did not fail in each of its confirmations, so nothing is claimed.
    FlakyResult {
        /// How often the result failed in its confirmations, and the number of confirmations.
        rate: Rate,
    },
    /// The smallest text found failed in none of its confirmations, so the result is the original
    /// input.
    Restored {
        /// Size, in bytes, of the smallest text found, which failed in none of its confirmations.
        size: u64,
    },
    /// The same text failed in one run and did not fail in another, so nothing is claimed.
    Contradicted,
    /// The budget of time ended before the search, so the result is the original input.
    Unsearched,
    /// The budget of time ended before the result was confirmed, so nothing is claimed.
    Unconfirmed {
        /// How often the result failed in the confirmations that were made, and their number.
        rate: Rate,
        /// Number of runs that were still to be made at the end of the budget to repeat tests: the
        /// tests of the result without one of its bytes, on which the claim rests that none is needless.
        unrepeated: u64,
    },
    /// The result is binary data of an unknown format, and too large to be searched for its records
    /// and for numbers that a run shows to be wrong. What is claimed of the result still holds.
    Unstructured {
        /// Size of the result, in bytes.
        size: u64,
    },
    /// The budget ended before each byte of the result was replaced by `0`, to see whether its
    /// value matters; the claim still holds.
    Values {
        /// Number of bytes of the result that no test has shown to matter, by replacing them by
        /// `0`.
        untried: u64,
    },
}

impl std::fmt::Display for Warning {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Warning::EmptyInputFails => f.write_str("the empty input fails, too, so it is the result"),
            Warning::AnyInputFails => f.write_str(
                "crashes on any input: the target crashes before it reads its input, never reads it \
                 (if it reads a file, write @@ for the path of that file in its arguments), or lacks \
                 something, such as memory beyond the limit (--memory)",
            ),
            Warning::MemoryLimit { limit } => write!(
                f,
                "the empty input fails, too, so it is the result: each run ended at the limit on \
                 memory of {} MiB. If the target needs more on any input, give a larger limit \
                 (--memory)",
                limit >> 20
            ),
            Warning::Unstructured { size } => f.write_str(&unsearched_records(*size)),
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
            Warning::Unsearched => f.write_str(
                "the time budget ended before the search, so the result is the input as it was given",
            ),
            Warning::Unconfirmed { rate, unrepeated } => {
                f.write_str(&missing_confirmations(*rate, *unrepeated))
            }
            Warning::Contradicted => f.write_str(
                "the same bytes failed in one run and not in another, so the result is not claimed to \
                 be minimal",
            ),
        }
    }
}

/// Returns a warning which says what the search has left out because the result, of `size` bytes,
/// is too large: the search for records and, in a still larger result, the search for a length and
/// a checksum of the whole.
fn unsearched_records(size: u64) -> String {
    let (records, frame) = (Full::LARGEST_RECORDS >> 10, Full::LARGEST_FRAME >> 20);
    let of_whole = match size > Full::LARGEST_FRAME as u64 {
        true => format!(
            ", and no length and no checksum of the whole, which is done in at most {frame} MiB"
        ),
        false => String::new(),
    };
    format!(
        "for the size of the result ({size} bytes) no records were searched for, which is done in at \
         most {records} KiB{of_whole}"
    )
}

/// Returns a warning which says that the budget of time ended before all confirming runs were made.
/// `rate` is how often the result has failed in its confirmations, and `unrepeated` is the number
/// of tests of the result without one byte that were not repeated.
fn missing_confirmations(rate: Rate, unrepeated: u64) -> String {
    if unrepeated > 0 {
        return format!(
            "the time budget ended before the claim was confirmed: the result failed in {rate}, and \
             {unrepeated} of the tests without one byte were not repeated"
        );
    }
    let again = match rate.tries {
        0 => "was not run again".to_owned(),
        _ => format!("failed in {rate}"),
    };
    format!("the time budget ended before the result was confirmed: after the search it {again}")
}

/// The result of a finished minimization: the smallest failing text, and what is claimed of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Minimized {
    /// The smallest failing input found; the original input if the smallest one failed in none of
    /// its confirmations.
    pub text: Vec<u8>,
    /// Property of the result that the log proves, such as 1-minimality.
    pub claim: Claim,
    /// Number of removals of single bytes of the result that are proven to make the failure go
    /// away, and number of all removals of single bytes.
    pub proved: Proved,
    /// Size of the original input, in bytes.
    pub size_before: u64,
    /// Numbers of the minimization's tests, by how each was answered: by a run, the cache, or a
    /// predictor.
    pub counts: Counts,
    /// How often the original input failed, in its runs at the start.
    pub baseline: Rate,
    /// How often the result failed, in its confirmations in fresh processes at the end.
    pub confirmed: Rate,
    /// Minor key of the result's crash, which identifies the call path; `None` if it was not
    /// computed.
    pub minor_after: Option<Key>,
    /// Keys of the crashes of other bugs that candidates had, in the order of discovery.
    pub slips: Vec<SlipKeys>,
    /// Warnings for the user, such as that the failure is flaky.
    pub warnings: Vec<Warning>,
}

impl Minimized {
    /// Returns the failure rate to report of a flaky failure; `None` if the failure is
    /// reproducible. It is the rate of the result, if some runs of the result did not fail.
    /// Otherwise it is the rate of the input, if runs of the input differed, or that of the
    /// confirming runs, if one text had different outcomes or the best text (the smallest failing
    /// so far) did not fail again.
    pub fn flaky(&self) -> Option<Rate> {
        let is_cut = |warning: &Warning| matches!(warning, Warning::Unconfirmed { .. });
        let of_result = self.warnings.iter().find_map(|warning| match warning {
            // Too few to say that it never fails: of the same input there are runs before the search.
            Warning::FlakyResult { rate } if rate.hits == 0 && self.warnings.iter().any(is_cut) => {
                Some(Rate {
                    hits: self.baseline.hits,
                    tries: self.baseline.tries + rate.tries,
                })
            }
            Warning::FlakyResult { rate } => Some(*rate),
            _ => None,
        });
        let differs = (1..self.baseline.tries).contains(&self.baseline.hits);
        let of_others = || {
            self.warnings.iter().find_map(|warning| match warning {
                Warning::FlakyInput { rate, .. } => Some(*rate),
                Warning::Unsearched => differs.then_some(self.baseline),
                // The budget of time has ended before it was run again.
                Warning::Restored { .. } if self.confirmed.tries == 0 => Some(self.baseline),
                Warning::Contradicted | Warning::Restored { .. } => Some(self.confirmed),
                _ => None,
            })
        };
        of_result.or_else(of_others)
    }
}

/// Number of tests of one minimization, by how each was answered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Counts {
    /// Number of tests for which the target was run: `test` lines with source `run`.
    pub executed: u64,
    /// Number of tests answered without a run, because another configuration (set of kept units)
    /// gave the same text.
    pub cached: u64,
    /// Number of tests answered without a run, because the same configuration (set of kept units)
    /// was tested before.
    pub repeated: u64,
    /// Number of tests answered by an outcome predictor, without a run.
    pub predicted: u64,
    /// Number of runs that workers made ahead of the search and whose outcomes the search did not
    /// need.
    pub speculative: u64,
    /// Number of runs that are not steps of the search: of the empty input (axiom), of the
    /// unchanged input (baseline), confirmations of the result, and repeated runs of candidates of
    /// a flaky input (votes).
    pub checks: u64,
}

impl Counts {
    /// Counts a test by the source of its outcome (run, cache or predictor); `hit` is the answer of
    /// the cache.
    pub(super) fn count(&mut self, source: Source, hit: Option<Hit>) {
        *match (source, hit) {
            (Source::Run, _) => &mut self.executed,
            (Source::Predicted, _) => &mut self.predicted,
            (Source::Cache, Some(Hit::Repeated(_))) => &mut self.repeated,
            (Source::Cache, _) => &mut self.cached,
        } += 1;
    }
}

/// How often a failure, or another expected outcome, occurred in repeated runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rate {
    /// Number of runs with the failure (or another outcome that was expected).
    pub hits: u64,
    /// Number of all runs, with and without the failure.
    pub tries: u64,
}

impl Rate {
    /// Returns the lower end of Wilson's score interval of the rate at one standard deviation: five
    /// of six true rates are higher. Not a number without runs.
    pub fn lower_end(self) -> f64 {
        let tries = self.tries as f64;
        let share = self.hits as f64 / tries;
        let spread = share * (1.0 - share) / tries + 1.0 / (4.0 * tries * tries);
        (share + 1.0 / (2.0 * tries) - spread.sqrt()) / (1.0 + 1.0 / tries)
    }
}

impl std::fmt::Display for Rate {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} of {} runs", self.hits, self.tries)
    }
}

/// The crash that was minimized; all fields are null for an interestingness test.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MinimizedCrash {
    /// Class of the crash that was minimized, such as `segv`.
    pub class: Option<Class>,
    /// First 12 hex digits of the major key, which identifies the bug.
    pub major: Option<String>,
    /// First 12 hex digits of the minor key of the original crash, which identifies the call path.
    pub minor: Option<String>,
}

/// A crash of another bug that a candidate had, with its crash keys.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SlipRecord {
    /// First 12 hex digits of the major key, which identifies the bug.
    pub major: String,
    /// First 12 hex digits of the minor key, which identifies the call path.
    pub minor: String,
    /// File of the crashing input; null if it was not stored.
    pub file: Option<OsText>,
    /// Shell script that shows the crash with the command line that the candidate had; absent
    /// unless a command line was minimized.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub script: Option<OsText>,
}

/// JSON result of minimizing one input. Sizes are in bytes, paths are absolute.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MinRecord {
    /// Property of the result that the log proves, such as 1-minimality.
    pub claim: Claim,
    /// Size of the input before minimization, in bytes.
    pub size_before: u64,
    /// Size of the input after minimization, in bytes.
    pub size_after: u64,
    /// Numbers of the minimization's tests, by how each was answered: by a run, the cache, or a
    /// predictor.
    pub tests: Counts,
    /// Number of removals of single bytes of the result that are proven to make the failure go
    /// away, and number of all removals of single bytes.
    pub proved: Proved,
    /// Name of the search (delta debugging algorithm), such as `ddmin`.
    pub search: String,
    /// The crash that the minimization preserved.
    pub outcome: MinimizedCrash,
    /// First 12 hex digits of the minor key (hash of the call path) of the result's crash; null if
    /// it was not computed.
    pub minor_after: Option<String>,
    /// How often the result failed, in its confirmations in fresh processes at the end.
    pub rate: Rate,
    /// Wall time of the minimization, in milliseconds.
    pub wall_ms: u64,
    /// Path of the file with the minimized input; null if it was not written to a file.
    pub output: Option<OsText>,
    /// File of the minimization log.
    pub log: Option<OsText>,
    /// Crashes of other bugs (with other crash keys) that candidates had.
    pub slips: Vec<SlipRecord>,
    /// The minimized call; null without `--args` and `--env-vars`.
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    pub call: Option<CallResult>,
}

/// The call that shows a crash, minimized together with its input (`--args`, `--env-vars`).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CallResult {
    /// Arguments of the minimized call, the program first; `@@` stands for a file with the input.
    pub args: Vec<OsText>,
    /// Environment variables of the minimized call: all of them with `--env-vars`, else only those
    /// that the user added.
    pub env: Vec<(OsText, OsText)>,
    /// Number of the call's arguments before minimization.
    pub args_before: u64,
    /// Number of environment variables in `env` before minimization.
    pub env_before: u64,
    /// The minimized call as one shell command, with the minimized input as its input.
    pub command: String,
    /// Path of a script that makes the minimized call and so shows the crash; null for a bundled
    /// target.
    pub script: Option<OsText>,
    /// The minimizations that led to the call, in the order in which they were made: of the input
    /// and of parts of the call.
    pub phases: Vec<PhaseRecord>,
}

/// One minimization of the several that minimize a call: of the input, or of one part of the call.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PhaseRecord {
    /// What this minimization reduced: `input`, `args`, `argument` or `env`.
    pub part: String,
    /// Size of what this minimization reduced, before it: a number of bytes, arguments, characters,
    /// or variables.
    pub before: u64,
    /// Size of what this minimization reduced, after it: a number of bytes, arguments, characters,
    /// or variables.
    pub after: u64,
    /// What the log proves of this part, such as 1-minimality, as long as the other parts do not
    /// change.
    pub claim: Claim,
    /// Number of removals of single units (bytes, arguments, characters, or variables) that are
    /// proven to make the failure go away, and number of all such removals.
    pub proved: Proved,
    /// Numbers of this minimization's tests, by how each was answered: by a run, the cache, or a
    /// predictor.
    pub tests: Counts,
    /// File of the log of this minimization.
    pub log: Option<OsText>,
}

impl MinRecord {
    /// Makes the JSON result of a minimization. `start` is the start line of its log, `wall` its
    /// wall time. The caller fills in `output`, `log` and the files of slips (crashes of other
    /// bugs).
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

/// Returns the crash that a minimization keeps: the class and keys that the log's start line names;
/// `None` for each of them if it names no crash.
pub(super) fn outcome_of(start: &StartLine) -> MinimizedCrash {
    let key = start.key.as_ref();
    MinimizedCrash {
        class: key.map(|key| key.class.clone()),
        major: key.map(|key| key.major.short()),
        minor: key.map(|key| key.minor.short()),
    }
}

/// Makes the JSON record of a slip (a crash of another bug) with the keys `keys`, without the path
/// of the file that stores the crashing input.
pub(super) fn slip_of(keys: &crate::SlipKeys) -> SlipRecord {
    SlipRecord {
        major: keys.major.short(),
        minor: keys.minor.short(),
        file: None,
        script: None,
    }
}

pub(super) fn wall_ms(wall: Duration) -> u64 {
    wall.as_millis().try_into().unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn warnings_say_what_a_limit_has_left_out() {
        let rate = Rate {
            hits: 20,
            tries: 20,
        };
        let unrepeated = |unrepeated| Warning::Unconfirmed { rate, unrepeated }.to_string();
        assert!(unrepeated(439).ends_with("439 of the tests without one byte were not repeated"));
        assert!(unrepeated(0).ends_with("after the search it failed in 20 of 20 runs"));
        let size = |size| Warning::Unstructured { size }.to_string();
        assert!(size(20_000).ends_with("at most 16 KiB"));
        assert!(size(5 << 20).ends_with("at most 4 MiB"));
        let limit = Warning::MemoryLimit { limit: 1 << 30 }.to_string();
        assert!(limit.contains("1024 MiB") && limit.contains("--memory"));
    }
}
