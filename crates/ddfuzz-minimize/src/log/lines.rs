//! The lines of the log, and the records in them.

use ddfuzz_delta::{Caching, Edit, Full, Outcome, Replacement, Structure};
use ddfuzz_exec::Limits;
use ddfuzz_triage::{Class, Key};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::crash_oracle::cut_off_by;
use crate::log::{
    Base64, CachingName, ChangesRecord, ChangesTest, ContentHash, CoverageRecord, DifferenceRecord,
    OsText, OutcomeName, PassingEnd, ShortHash, TargetRecord,
};
use crate::steadiness::{AGREEING, ESTIMATING};
use crate::{Claim, Counts, CutOff, Process, ProofRef, Proved, SlipKeys, structure_name};

/// Version of the log format that this code writes and reads.
pub const VERSION: u32 = 1;

/// One line of a minimization log, by its kind.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "lowercase")]
pub enum Line {
    /// The first line: what is minimized, and with which settings.
    Start(Box<StartLine>),
    /// A test of a candidate, in the search or the proof after it, with its outcome.
    Test(TestLine),
    /// A check: a run that is not a step of the search or the proof.
    Check(CheckLine),
    /// A reduction: a test failed, and its candidate is the best text (the smallest failing so far)
    /// from here on. For `diff` and `max`: the passing or the failing side changed.
    Reduce(ReduceLine),
    /// The last line: the result, and what is claimed of it.
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

/// Class and keys of the crash being minimized, which the crash of each failing candidate must
/// have.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct KeyRecord {
    /// Class of the crash, such as `segv` or `asan:heap-buffer-overflow`.
    pub class: Class,
    /// Major key of the crash, which identifies the bug.
    pub major: Key,
    /// Minor key of the crash, which identifies the call path by which the bug is reached.
    pub minor: Key,
}

/// The interestingness test that decides the outcomes; `target` records its program and arguments.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TestRecord {
    /// Name of the file with the candidate in the working directory of the interestingness test.
    pub name: OsText,
    /// BLAKE3 hash of the interestingness test's file.
    pub blake3: ContentHash,
}

/// The first line of a log: the input, the target and the settings of the minimization.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct StartLine {
    /// Version of the log format, written as the first field.
    #[serde(skip_serializing)]
    pub v: u32,
    /// BLAKE3 hash of the input that is minimized; if a call is minimized, of the text that stands
    /// for the call.
    pub input_blake3: ContentHash,
    /// Size of what is minimized: of an input in bytes, of a call in units, of two versions of a
    /// program in changes between them.
    pub size: u64,
    /// Name of the search (delta debugging algorithm), such as `ddmin`.
    pub search: String,
    /// Name of the structure (a file format or a grammar) that the search `full` uses; absent if
    /// none was recognized.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub structure: Option<String>,
    /// Whether the user has named the structure; a log with another one is then that of another
    /// minimization. Not recorded.
    #[serde(skip)]
    #[schemars(skip)]
    pub structure_is_named: bool,
    /// The target that is run: its program, arguments, environment and way of execution.
    pub target: TargetRecord,
    /// BLAKE3 hash of the target's program file; absent if an interestingness test decides, and in
    /// older logs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub build: Option<ContentHash>,
    /// Class and keys of the crash that candidates must show; null if an interestingness test or
    /// `coverage` decides.
    pub key: Option<KeyRecord>,
    /// Limits on each run of the target, such as its time and memory.
    pub limits: Limits,
    /// Version of ddfuzz that wrote the log.
    pub ddfuzz: String,
    /// The rule that decides which tests are answered by earlier outcomes, without a run.
    #[schemars(with = "CachingName")]
    pub cache: Caching,
    /// Whether the time limit is learned from the `baseline` checks (runs of the unchanged input).
    /// The CPU time limit is then 10 times the greatest `cpu_us` of the checks that failed, at
    /// least 50 ms; the wall time limit is twice that, at least 2 s, and if an interestingness test
    /// decides, at least 10 times the greatest `us`. Before that, `limits` apply.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub learn_limit: bool,
    /// True if an earlier run of the input did not fail. Twenty `baseline` checks must then fail,
    /// instead of three, for the input to count as failing in every run; five in a log without
    /// `repeats`.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub doubtful: bool,
    /// If true, the runs on which a claim rests are repeated at the end: the result is run once for
    /// each five executed tests, at least `confirms` and at most twenty times; and as many texts
    /// without a single byte, which did not fail, are run again, or more after many tests. Absent
    /// in older logs.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub repeats: bool,
    /// Least number of runs that confirm the result; if there are few removals of single bytes,
    /// also how often these are run again. Absent in older logs, and where each failing run takes
    /// its whole limit, as a hang does; the number is then three.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub confirms: Option<u64>,
    /// If true, failing candidates must show the minor key (hash of the call path) too, even if
    /// they only delete bytes.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub hold_minor: bool,
    /// Interestingness test that decides the outcomes; absent if crash keys or coverage decide.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub test: Option<TestRecord>,
    /// Coverage that candidates must keep when a file of a corpus is trimmed; absent otherwise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub coverage: Option<CoverageRecord>,
    /// Part of the target's command line or environment that is minimized; absent if the input is
    /// minimized.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub call: Option<CallRecord>,
    /// Path of the file with the input; absent if the input has no file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input: Option<OsText>,
    /// Seed of the campaign that found the input; absent if no campaign did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seed: Option<u64>,
    /// What `diff` and `max` search for, and between which inputs; absent for `min`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub difference: Option<DifferenceRecord>,
    /// What `changes` searches for; absent for all other commands.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub changes: Option<ChangesRecord>,
}

impl StartLine {
    /// Makes the start line for the log of a minimization of `input` by the search named `search`,
    /// with the structure that is recognized in the input. Other optional fields are absent.
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
            structure: structure_name(search, input),
            structure_is_named: false,
            target,
            build: None,
            key,
            limits,
            ddfuzz: env!("CARGO_PKG_VERSION").to_owned(),
            cache: Caching::default(),
            learn_limit: false,
            doubtful: false,
            repeats: false,
            confirms: None,
            hold_minor: false,
            test: None,
            coverage: None,
            call: None,
            input: None,
            seed: None,
            difference: None,
            changes: None,
        }
    }
}

/// Name by which a user chooses that no structure of the input is used.
pub const NO_STRUCTURE: &str = "none";

impl StartLine {
    /// Returns the minor key (hash of the call path) that the crash of each failing candidate must
    /// have; `None` if deleting bytes may change it.
    pub fn held_minor(&self) -> Option<Key> {
        let key = self.key.as_ref().filter(|_| self.hold_minor);
        key.map(|key| key.minor)
    }

    /// Records in the start line that the minimization, at its end, repeats the runs on which the
    /// claim about its result rests, and the least number of runs that confirm the result (none for
    /// a hang or a memory blow-up).
    pub fn repeat_claims(&mut self) {
        let by_limit = |key: &KeyRecord| cut_off_by(&key.class).is_some();
        let takes_limit = self.key.as_ref().is_some_and(by_limit);
        self.repeats = true;
        self.confirms = (!takes_limit).then_some(ESTIMATING);
    }

    /// Returns the least number of times that the result is confirmed, if the runs on which a claim
    /// rests are repeated; `None` in older logs.
    pub(crate) fn least_confirmations(&self) -> Option<u64> {
        self.repeats.then(|| self.confirms.unwrap_or(AGREEING))
    }

    /// Records the structure of the input by which the search `full` works: `chosen` is the name
    /// that the user gives, or [`NO_STRUCTURE`] for none; `None` keeps the structure that was
    /// recognized. Other searches use no structure.
    pub fn use_structure(&mut self, chosen: Option<&str>) {
        if let Some(name) = chosen.filter(|_| self.search == Full::NAME) {
            self.structure = (name != NO_STRUCTURE).then(|| name.to_owned());
        }
    }

    /// Records the structure that the user named ([`StartLine::use_structure`]), so that a log with
    /// another one is not continued.
    pub fn name_structure(&mut self, name: &str) {
        self.use_structure(Some(name));
        self.structure_is_named = self.search == Full::NAME;
    }

    /// Records the language that most inputs of the target are in (`usual`) as the structure, if
    /// the input was only recognized as a text: a mutated input may have too many syntax errors to
    /// be recognized.
    pub fn use_language(&mut self, usual: Option<&str>) {
        if self.structure.as_deref() == Some(Structure::TEXT)
            && let Some(name) = usual
        {
            self.structure = Some(name.to_owned());
        }
    }
}

/// Source of a test's outcome: a run, the cache of contents, or a predictor.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Source {
    /// The outcome comes from a run of the target.
    Run,
    /// The outcome comes from the cache of contents: an earlier test or check had the same text.
    Cache,
    /// The outcome comes from a predictor, which derived it from earlier tests without a run.
    Predicted,
}

/// The phase that a test belongs to if it was made after the search.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Phase {
    /// The test belongs to the proof of a claim such as 1-minimality, after the search.
    Proof,
}

/// The log line of one test of a candidate, in the search or in the proof of minimality after it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TestLine {
    /// Index of the test among all tests of the log, from 0.
    pub i: u64,
    /// The first 8 bytes of the candidate's BLAKE3 hash.
    pub hash: ShortHash,
    /// How the candidate was made from the best text (the smallest failing so far) or from the
    /// original input: by `cut`, `keep` or `set`.
    #[serde(flatten)]
    pub edit: EditRecord,
    /// Size of the candidate, in bytes.
    pub size: u64,
    /// Outcome of the test: PASS, FAIL or UNRESOLVED.
    #[schemars(with = "OutcomeName")]
    pub outcome: Outcome,
    /// Source of the outcome: a run, the cache of contents, or a predictor.
    pub source: Source,
    /// Wall time of the test, in microseconds.
    pub us: u64,
    /// Wall time of the minimization up to this test, over all calls, in milliseconds; recorded at
    /// most once per second.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spent_ms: Option<u64>,
    /// Name of the pass that made the candidate; absent if the search has one pass only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pass: Option<String>,
    /// `proof` if the test belongs to the proof of minimality after the search; absent in the
    /// search.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub phase: Option<Phase>,
    /// Limit (time or memory) that ended the run; absent if the run ended by itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cut_off: Option<CutOff>,
    /// Whether earlier tests had run in the process of this test. Left out of the log line if the
    /// test had a process of its own.
    #[serde(default, skip_serializing_if = "Process::is_own")]
    pub process: Process,
    /// Keys of the crash that the candidate had, if it is the crash of another bug than the one
    /// being minimized; absent otherwise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub slip: Option<SlipKeys>,
    /// Number of further runs of the same text that passed, although one failed, so that the
    /// failure is flaky; absent if none passed.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub missed: u64,
    /// Minor key of a failing candidate's crash; absent if it is that of the best text (the
    /// smallest failing so far) before this test.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub minor: Option<Key>,
    /// Operands of the last comparisons of the run whose two operands differed, oldest first; the
    /// search makes candidates from them. Absent if the run was not observed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub comparisons: Option<Vec<(Base64, Base64)>>,
    /// The bytes of the candidate; absent without `--log-inputs`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input: Option<Base64>,
    /// The fields that only tests of `ddfuzz changes` have; absent for all other commands.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub changes: Option<Box<ChangesTest>>,
}

impl TestLine {
    /// Checks whether the outcome of this logged test is FAIL, which means that its candidate kept
    /// the failure.
    pub fn has_failed(&self) -> bool {
        self.outcome == Outcome::Fail
    }
}

/// Purpose of a check, which is a run that is not a step of the search.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum What {
    /// Axiom: a run of the empty input, which must not fail.
    Axiom,
    /// Baseline: a run of the unchanged input.
    Baseline,
    /// Confirmation: a run of the result in a fresh process.
    Confirm,
    /// Vote: a run of a candidate of a flaky input that did not fail and is repeated (the `test`
    /// line follows); or, after the confirmations, another run of a removal on which the claim of
    /// minimality rests.
    Vote,
}

/// A line of the log for a run that is not a step of the search: of the empty input (axiom), of the
/// unchanged input (baseline), of the result (confirmation), or of a candidate again (vote).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CheckLine {
    /// Purpose of the check, such as a run of the empty input (axiom) or of the unchanged input
    /// (baseline).
    pub what: What,
    /// Outcome of the run: PASS, FAIL or UNRESOLVED.
    #[schemars(with = "OutcomeName")]
    pub outcome: Outcome,
    /// Wall time of the check's run, in microseconds.
    pub us: u64,
    /// CPU time of the target's run, in microseconds; recorded for `baseline` checks (runs of the
    /// unchanged input) only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu_us: Option<u64>,
    /// Number of bytes of the input that the target read; recorded for `baseline` checks only, and
    /// if it is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub read: Option<u64>,
    /// Wall times in microseconds of the slowest build and of the slowest test so far, from which
    /// `ddfuzz changes` learns its time limits; absent in other logs, and in confirmations.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub slowest_us: Option<[u64; 2]>,
    /// Minor key of the crash; absent if the run did not fail, or its crash was not classified.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub minor: Option<Key>,
    /// Limit (time or memory) that ended the run; absent if the run ended by itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cut_off: Option<CutOff>,
    /// Whether earlier tests had run in the process of this run. Left out of the log line if the
    /// run had a process of its own.
    #[serde(default, skip_serializing_if = "Process::is_own")]
    pub process: Process,
    /// Keys of the crash that the run had, if it is the crash of another bug than the one being
    /// minimized; absent otherwise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub slip: Option<SlipKeys>,
    /// Number of further runs of the same text that passed, although one failed, so that the
    /// failure is flaky; absent if none passed.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub missed: u64,
    /// For `diff`: whether a confirmation runs the passing side although those of the failing side
    /// are not complete, because the budget of time has ended them; absent otherwise.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub passing: bool,
}

fn is_zero(count: &u64) -> bool {
    *count == 0
}

/// A line of the log for a reduction: a test failed, and its candidate becomes the best text (the
/// smallest failing so far). For `diff` and `max`: the passing or the failing side changed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ReduceLine {
    /// Index of the test whose failing candidate became the best text (the smallest failing so far)
    /// or, for `diff` and `max`, changed a side.
    pub i: u64,
    /// Rule by which the candidate was made: `subset`, `complement`, or the name of a pass.
    pub rule: String,
    /// Size of the new best text (the smallest failing so far), in bytes; for `diff` and `max`, of
    /// the side that changed.
    pub size: u64,
}

/// The last line of a log: the result of the minimization.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct EndLine {
    /// Degree of minimality that the log proves of the result, such as 1-minimality.
    pub claim: Claim,
    /// Size of the result, in bytes; for `diff` and `max`, of the failing side.
    pub size: u64,
    /// BLAKE3 hash of the result; for `diff` and `max`, of the failing side.
    pub blake3: ContentHash,
    /// Numbers of the tests in the log, by how each was answered: by a run, the cache, or a
    /// predictor.
    pub tests: Counts,
    /// Number of tests that the claim needs, and how many of them have an outcome that proves it.
    pub proved: Proved,
    /// Log entries that prove the claim. `min` has one for each distinct removal of a byte,
    /// ascending by removal; `max` has one for adding each single delta; `diff` has one for adding
    /// and one for removing each.
    pub proof: Vec<ProofRef>,
    /// The passing side of `diff` and `max`; absent for `min`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub passing: Option<PassingEnd>,
}

/// A part of a call: of the command line and environment with which a target runs its input.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Part {
    /// All arguments; each of them is a unit, except those that contain `@@`, which always stay.
    Args,
    /// A single argument; each of its characters is a unit, or each of its bytes if it is not UTF-8
    /// or has more than 256 different characters.
    Argument,
    /// The environment; each of its variables is a unit.
    Env,
}

/// Part of the target's command line or environment that is minimized instead of its input. The log
/// then stores candidates as sequences of bytes, each of which stands for one unit (argument,
/// variable or character) of the part.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CallRecord {
    /// Part of the call that is minimized: arguments, one argument, or the environment.
    pub part: Part,
    /// For one argument, its index in the target's arguments; otherwise the index, among the part's
    /// units, of the first of the at most 256 units that are minimized together.
    pub at: u64,
    /// Hash of the input with which the target is run. Its path is `input` of the start line,
    /// absent if there is no input.
    pub input_blake3: ContentHash,
}

/// How a candidate was made: one of the fields `cut`, `keep` and `set`. Ranges are in bytes; those
/// of `keep` count deltas or changes if the start line has `difference` or `changes`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum EditRecord {
    /// Ranges that were removed from the best text (the smallest failing so far), each as its start
    /// and end.
    Cut(Vec<[u64; 2]>),
    /// Ranges of the original that were kept, each as its start and end; everything else was
    /// removed.
    Keep(Vec<[u64; 2]>),
    /// Ranges of the best text (the smallest failing so far) that were replaced, each as its start,
    /// its end, and the new bytes.
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
