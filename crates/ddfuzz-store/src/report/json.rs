//! Results for scripts (interface.md, "JSON results"): keys are a contract, and null where
//! nothing can be said.

use std::path::{Path, PathBuf};

use serde::{Serialize, Serializer};
use serde_json::Value;

use super::{GroupView, VariantView};
use crate::{Kind, SettingsFile, Status, StoreError};
use ddfuzz_exec::Way;
use ddfuzz_minimize::Rate;
use ddfuzz_triage::Severity;

/// The result of `run`.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct RunResult {
    /// Runs of this call's fuzzing.
    pub runs: u64,
    /// Runs per second of it.
    pub runs_per_s: f64,
    /// Seconds of it.
    pub seconds: f64,
    /// The groups of the output directory's `crashes`.
    pub groups: Vec<RunGroup>,
    /// How many of them this call found first.
    pub new_groups: u64,
    /// Groups of hangs.
    pub hangs: u64,
    /// Groups of runs over the memory limit.
    pub ooms: u64,
    /// Groups of crashes that did not come again.
    pub flaky: u64,
    /// Runs over their time limit that are stored under `flaky` without a name: the time was over
    /// before it was found out where they hang; absent where there are none.
    #[serde(skip_serializing_if = "crate::json::is_zero")]
    pub unnamed_hangs: u64,
    /// The way of execution.
    pub exec: Way,
    /// Whether it went on with an earlier call's campaign.
    pub resumed: bool,
    /// What ended it.
    pub ended_by: EndedBy,
    /// Whether the program was built anew since the campaign began, so that not all of it is a
    /// function of its seed.
    pub rebuilt: bool,
    /// What speaks against fuzzing the target as it is called, as sentences.
    pub warnings: Vec<String>,
    /// What a file of settings has added to the command line; null where nothing did.
    pub settings: Option<SettingsFile>,
}

/// What ended a campaign.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum EndedBy {
    /// All runs that were asked for are made.
    Runs,
    /// The time for fuzzing is over.
    Time,
    /// It has found what was waited for, or nothing new for long enough.
    Until,
    /// The fuzzer that was watched has ended.
    Fuzzer,
    /// The user stopped it.
    Interrupted,
}

/// One group in the result of `run`.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct RunGroup {
    /// The first 12 hex digits of the major key.
    pub major: String,
    /// The first 12 hex digits of the minor key.
    pub minor: String,
    /// What kind of death.
    pub class: String,
    /// Runs of all campaigns that ended so.
    pub runs_seen: u64,
    /// Size of the input as found, in bytes.
    pub size_before: u64,
    /// Size of the best input known, in bytes.
    pub size_after: u64,
    /// The claim; null while the minimization has not ended.
    pub claim: Option<String>,
    /// Tests by how they were answered, as in the result of `min`; null like the claim.
    pub tests: Option<Value>,
    /// The file of the best input known.
    #[serde(serialize_with = "lossy")]
    pub file: PathBuf,
    /// The minimization log; null where there is none.
    #[serde(serialize_with = "lossy_option")]
    pub log: Option<PathBuf>,
    /// What a harness with structured input makes of the reproducer, as `Debug` writes it; null
    /// where it was not told.
    pub debug: Option<String>,
    /// The kind of finding.
    pub kind: Kind,
    /// The group's estimate.
    pub severity: Severity,
    /// Why the input has its estimate.
    pub severity_reason: String,
    /// The first frame of the user's code; null where none is known.
    pub frame: Option<String>,
    /// What the crash said, as `message` in `crash.json`; null where nothing did.
    pub message: Option<String>,
    /// How often it fails, where it does not each time; null where it does.
    pub flaky: Option<Rate>,
    /// The same as `file:line`, where that is known, the path as the program has it.
    pub source: Option<String>,
    /// What became of it when the program was built anew; null where it was not.
    pub status: Option<Status>,
    /// Which utility crashed; present in a study of many.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub utility: Option<String>,
    /// Whether the target crashes so whatever the input is; absent where it does not.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub any_input: bool,
    /// The reproducers of its other minor keys, by size; absent where there are none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub variants: Vec<VariantView>,
}

impl From<&GroupView> for RunGroup {
    fn from(view: &GroupView) -> RunGroup {
        let minimized = view.minimized.as_ref();
        RunGroup {
            major: view.major.short(),
            minor: view.minor.short(),
            class: view.class.to_string(),
            runs_seen: view.runs_seen,
            size_before: view.size_before,
            size_after: view.size_after(),
            claim: minimized.map(|minimized| minimized.claim.clone()),
            tests: minimized.map(|minimized| minimized.tests.clone()),
            file: view.file.clone(),
            log: view.log.clone(),
            debug: minimized.and_then(|minimized| minimized.debug.clone()),
            kind: view.kind,
            severity: view.severity,
            severity_reason: view.severity_reason.clone(),
            frame: view.place.clone(),
            message: view.trace.message.clone(),
            flaky: view.flaky,
            source: view.source.clone(),
            status: view.status,
            utility: view.utility.clone(),
            any_input: minimized.is_some_and(|minimized| minimized.any_input),
            variants: view.variants.clone(),
        }
    }
}

/// An error: `{"error":{"kind","message","path","hint"}}`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ErrorReport {
    /// The error.
    pub error: ErrorBody,
}

/// What an [`ErrorReport`] says.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ErrorBody {
    /// A name for scripts.
    pub kind: String,
    /// A sentence for people.
    pub message: String,
    /// The path concerned.
    #[serde(serialize_with = "lossy_option")]
    pub path: Option<PathBuf>,
    /// What to do about it.
    pub hint: Option<String>,
}

impl From<&StoreError> for ErrorReport {
    fn from(error: &StoreError) -> ErrorReport {
        let path = error.path();
        ErrorReport {
            error: ErrorBody {
                kind: error.kind().to_owned(),
                message: error.to_string(),
                path: Some(std::path::absolute(path).unwrap_or_else(|_| path.to_owned())),
                hint: error.hint(),
            },
        }
    }
}

/// A path as JSON; what is not UTF-8 in it stands as replacement characters, for a result with
/// an odd name is better than none.
pub(super) fn lossy<S: Serializer>(path: &Path, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(&path.to_string_lossy())
}

fn lossy_option<S: Serializer>(path: &Option<PathBuf>, serializer: S) -> Result<S::Ok, S::Error> {
    match path {
        Some(path) => lossy(path, serializer),
        None => serializer.serialize_none(),
    }
}
