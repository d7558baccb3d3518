//! The lines of the log, and the records in them.

use ddfuzz_delta::{Caching, Edit, Outcome, Replacement};
use ddfuzz_exec::Limits;
use ddfuzz_triage::{Class, Key};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::log::{
    Base64, CachingName, ContentHash, CoverageRecord, DifferenceRecord, OsText, OutcomeName,
    PassingEnd, ShortHash, TargetRecord,
};
use crate::{Claim, Counts, CutOff, Process, ProofRef, Proved, SlipKeys};

/// Version of the log format that this code writes and reads.
pub const VERSION: u32 = 1;

/// One line of the log.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "lowercase")]
pub enum Line {
    /// The first line.
    Start(Box<StartLine>),
    /// A question of the search or the proof, with its answer.
    Test(TestLine),
    /// Anything else that ran the target.
    Check(CheckLine),
    /// A test failed: its candidate is the current best from here on.
    Reduce(ReduceLine),
    /// The last line.
    End(EndLine),
}

/// JSON form of a log's start line, with the format version `v` as the first field.
#[derive(Serialize)]
struct Versioned<'a> {
    v: u32,
    #[serde(flatten)]
    line: &'a Line,
}

impl Line {
    /// Returns the log line as JSON, followed by a newline.
    pub fn to_json(&self) -> serde_json::Result<Vec<u8>> {
        let mut json = match self {
            Line::Start(start) => serde_json::to_vec(&Versioned {
                v: start.v,
                line: self,
            })?,
            _ => serde_json::to_vec(self)?,
        };
        json.push(b'\n');
        Ok(json)
    }

    /// Returns the kind of the line (`start`, `test`, `check`, `reduce` or `end`), as in its JSON
    /// field `kind`.
    pub fn kind(&self) -> &'static str {
        match self {
            Line::Start(_) => "start",
            Line::Test(_) => "test",
            Line::Check(_) => "check",
            Line::Reduce(_) => "reduce",
            Line::End(_) => "end",
        }
    }
}

/// The crash being held.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct KeyRecord {
    /// What kind of death.
    pub class: Class,
    /// Which bug.
    pub major: Key,
    /// Which way into it.
    pub minor: Key,
}

/// An interestingness test; its program is that of the target.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TestRecord {
    /// What the input is called in its directory.
    pub name: OsText,
    /// Hash of the test's file.
    pub blake3: ContentHash,
}

/// What is minimized, and how.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct StartLine {
    /// Version of the schema; written first.
    #[serde(skip_serializing)]
    pub v: u32,
    /// Hash of the input; of a call, that of its text.
    pub input_blake3: ContentHash,
    /// Size of the input, in bytes; of a call, in units.
    pub size: u64,
    /// Name of the search.
    pub search: String,
    /// The target.
    pub target: TargetRecord,
    /// The crash being held; null where an interestingness test or `coverage` decides.
    pub key: Option<KeyRecord>,
    /// Limits on each run.
    pub limits: Limits,
    /// Version of ddfuzz.
    pub ddfuzz: String,
    /// Which tests are answered without a run.
    #[schemars(with = "CachingName")]
    pub cache: Caching,
    /// Whether the limit on time is learned from the `baseline` checks: 10 times the greatest
    /// `cpu_us` of those that failed, at least 50 ms, with a wall limit of twice that, at least
    /// 2 s; where a test decides, also 10 times the greatest `us`. `limits` hold until then.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub learn_limit: bool,
    /// Whether the input did not fail in a run before this line: five `baseline` checks have to
    /// agree then, instead of three.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub doubtful: bool,
    /// Whether the minor key has to stay as well, also where bytes are only deleted.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub hold_minor: bool,
    /// The interestingness test that decides, where one does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub test: Option<TestRecord>,
    /// The coverage that decides, where a file of a corpus is trimmed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub coverage: Option<CoverageRecord>,
    /// The part of the target's call that is minimized, where it is not the input.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub call: Option<CallRecord>,
    /// Path of the input, as given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input: Option<OsText>,
    /// Seed of the campaign that found it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seed: Option<u64>,
    /// What `diff` and `max` search for; absent for `min`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub difference: Option<DifferenceRecord>,
}

impl StartLine {
    /// Makes the start line for the log of a minimization of `input` by the search named `search`.
    /// Optional fields are absent.
    pub fn new(
        input: &[u8],
        search: &str,
        target: TargetRecord,
        key: Option<KeyRecord>,
        limits: Limits,
    ) -> StartLine {
        StartLine {
            v: VERSION,
            input_blake3: ContentHash::of(input),
            size: input.len() as u64,
            search: search.to_owned(),
            target,
            key,
            limits,
            ddfuzz: env!("CARGO_PKG_VERSION").to_owned(),
            cache: Caching::default(),
            learn_limit: false,
            doubtful: false,
            hold_minor: false,
            test: None,
            coverage: None,
            call: None,
            input: None,
            seed: None,
            difference: None,
        }
    }
}

/// Where an outcome came from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Source {
    /// The target was run.
    Run,
    /// The content cache knew it.
    Cache,
    /// A predictor said it.
    Predicted,
}

/// The part of a minimization that a test belongs to, the search aside.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Phase {
    /// The proof, after the search.
    Proof,
}

/// One test of the search or the proof.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TestLine {
    /// Index of the test, from 0.
    pub i: u64,
    /// Short hash of the candidate.
    pub hash: ShortHash,
    /// How the candidate was made.
    #[serde(flatten)]
    pub edit: EditRecord,
    /// Size of the candidate, in bytes.
    pub size: u64,
    /// What the test said.
    #[schemars(with = "OutcomeName")]
    pub outcome: Outcome,
    /// Where that came from.
    pub source: Source,
    /// Wall time of the test, in microseconds.
    pub us: u64,
    /// The pass that asked, where the search has several.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pass: Option<String>,
    /// Present in the proof.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub phase: Option<Phase>,
    /// The limit that ended the run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cut_off: Option<CutOff>,
    /// Present where the outcome rests on a process that earlier tests had run in.
    #[serde(default, skip_serializing_if = "Process::is_own")]
    pub process: Process,
    /// The other bug that the candidate ran into.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub slip: Option<SlipKeys>,
    /// The minor key of a candidate that failed, where it is not that of the best before it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub minor: Option<Key>,
    /// Where the run was observed: the operands of the last comparisons that differed, oldest
    /// first. The search goes on by them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub comparisons: Option<Vec<(Base64, Base64)>>,
    /// The candidate itself, with `--log-inputs`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input: Option<Base64>,
}

impl TestLine {
    /// Checks whether the outcome of this logged test is FAIL, which means that its candidate kept
    /// the failure.
    pub fn has_failed(&self) -> bool {
        self.outcome == Outcome::Fail
    }
}

/// What a check is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum What {
    /// The empty input.
    Axiom,
    /// The input as it is.
    Baseline,
    /// The result, in a fresh process.
    Confirm,
    /// A run of a candidate of a flaky input that did not fail, and is not the last: the `test`
    /// line follows.
    Vote,
}

/// A run aside from the search.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CheckLine {
    /// What it is for.
    pub what: What,
    /// What it said.
    #[schemars(with = "OutcomeName")]
    pub outcome: Outcome,
    /// Wall time, in microseconds.
    pub us: u64,
    /// CPU time of the target's run, in microseconds; of a `baseline` only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu_us: Option<u64>,
    /// Bytes of the input that the target read, where that is known; of a `baseline` only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub read: Option<u64>,
    /// The minor key, where it failed and a key was taken.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub minor: Option<Key>,
    /// The limit that ended the run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cut_off: Option<CutOff>,
    /// Present where the outcome rests on a process that earlier tests had run in.
    #[serde(default, skip_serializing_if = "Process::is_own")]
    pub process: Process,
    /// The other bug that it ran into.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub slip: Option<SlipKeys>,
}

/// A reduction.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ReduceLine {
    /// Index of the test that failed.
    pub i: u64,
    /// The rule that made its candidate: `subset`, `complement`, or a pass by name.
    pub rule: String,
    /// Size of the new best, in bytes.
    pub size: u64,
}

/// The result.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct EndLine {
    /// What is proven of it.
    pub claim: Claim,
    /// Its size, in bytes.
    pub size: u64,
    /// Its hash.
    pub blake3: ContentHash,
    /// Tests by kind.
    pub tests: Counts,
    /// How much is proven.
    pub proved: Proved,
    /// What proves it: of `min`, one for each distinct removal of a byte, ascending by removal; of
    /// `max`, one for adding each single delta; of `diff`, one for adding and one for removing it.
    pub proof: Vec<ProofRef>,
    /// The passing end of `diff` and `max`; `size` and `blake3` are those of the failing one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub passing: Option<PassingEnd>,
}

/// A part of a call: of the command line and environment with which a target runs its input.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Part {
    /// The arguments; each is a unit, but for those that hold `@@`, which stay.
    Args,
    /// One argument; each of its characters is a unit, or each byte where it is not UTF-8 or has
    /// more than 256 different ones.
    Argument,
    /// The environment; each variable is a unit.
    Env,
}

/// The part of the target's call that is minimized instead of its input. What the log calls input
/// and text is then a sequence of bytes that each stand for a unit of the part.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CallRecord {
    /// The part.
    pub part: Part,
    /// Of one argument, its index in the target's arguments, else of the first of at most 256
    /// units that are minimized together, its index among the part's units.
    pub at: u64,
    /// Hash of the input that the target is given; `input` is its path, absent for none.
    pub input_blake3: ContentHash,
}

/// An edit: one of the fields `cut`, `keep` and `set`, ranges in bytes; those of `keep` in deltas
/// where the start line says that these are no bytes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum EditRecord {
    /// Ranges removed from the current best.
    Cut(Vec<[u64; 2]>),
    /// Ranges of the original kept.
    Keep(Vec<[u64; 2]>),
    /// Ranges of the current best replaced.
    Set(Vec<(u64, u64, Base64)>),
}

impl From<&Edit> for EditRecord {
    fn from(edit: &Edit) -> EditRecord {
        let pair = |range: &std::ops::Range<usize>| [range.start as u64, range.end as u64];
        match edit {
            Edit::Cut(cuts) => EditRecord::Cut(cuts.iter().map(pair).collect()),
            Edit::Keep(config) => {
                EditRecord::Keep(config.ranges().map(|kept| pair(&kept)).collect())
            }
            Edit::Set(replacements) => {
                let triple = |new: &Replacement| {
                    let [start, end] = pair(&new.at);
                    (start, end, Base64(new.with.clone()))
                };
                EditRecord::Set(replacements.iter().map(triple).collect())
            }
        }
    }
}
