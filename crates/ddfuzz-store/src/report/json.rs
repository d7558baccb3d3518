//! Results of `ddfuzz run` and errors as JSON (docs/src/exit-codes.md). The keys are part of
//! the interface; unknown values are null.

use std::path::{Path, PathBuf};

use serde::{Serialize, Serializer};
use serde_json::Value;

use super::{GroupView, VariantView};
use crate::{Kind, LastCheck, SettingsFile, Status, StoreError};
use ddfuzz_exec::Way;
use ddfuzz_minimize::Rate;
use ddfuzz_model::files::OsText;
use ddfuzz_triage::Severity;

/// Result of `ddfuzz run`: numbers of runs and groups, the reason why the campaign ended, and the
/// groups of crashes.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct RunResult {
    /// Number of fuzzing runs in this call of `ddfuzz run`. If this call completes the `--runs` of
    /// interrupted calls, their runs are included.
    pub runs: u64,
    /// Number of fuzzing runs of the campaign, in all calls of `ddfuzz run` together; left out of
    /// the JSON if all were made in this call. The failing ones among them are counted in
    /// `runs_seen` of the groups, together with those of earlier campaigns in the same directory.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub runs_of_campaign: Option<u64>,
    /// Fuzzing runs per second in this call of `ddfuzz run`.
    pub runs_per_s: f64,
    /// Duration of the fuzzing in this call of `ddfuzz run`, in seconds.
    pub seconds: f64,
    /// Groups of crashes in the output directory (its folder `crashes`).
    pub groups: Vec<RunGroup>,
    /// Number of crash groups that this call of `ddfuzz run` found first.
    pub new_groups: u64,
    /// Number of groups of hangs in the output directory.
    pub hangs: u64,
    /// Number of groups of out-of-memory failures in the output directory.
    pub ooms: u64,
    /// Number of groups, in the output directory, of crashes that did not occur again when the
    /// input was re-run.
    pub flaky: u64,
    /// Number of runs over the time limit that are stored under `flaky` because the time ended
    /// before their location was determined; omitted if 0.
    #[serde(skip_serializing_if = "crate::json::is_zero")]
    pub unnamed_hangs: u64,
    /// Number of findings (crashes, hangs and others) of this call of `ddfuzz run` that were not
    /// stored because the disk was full, and still was when the fuzzing ended; omitted if 0.
    #[serde(skip_serializing_if = "crate::json::is_zero")]
    pub unstored: u64,
    /// Way in which the target was run: fork server, `execve` and so on.
    pub exec: Way,
    /// Whether this call of `ddfuzz run` continued the campaign of an earlier one.
    pub resumed: bool,
    /// Reason why the campaign ended: all runs made, time over, findings reached, and so on.
    pub ended_by: EndedBy,
    /// Whether the program was rebuilt during the campaign; if so, the seed does not reproduce the
    /// campaign.
    pub rebuilt: bool,
    /// Warnings, as sentences, that the target, called as it is, is unsuitable for fuzzing.
    pub warnings: Vec<String>,
    /// Options that a settings file added to the command line; null if none were added.
    pub settings: Option<SettingsFile>,
}

/// Reason why a campaign ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum EndedBy {
    /// The campaign ended because all requested runs were made.
    #[default]
    Runs,
    /// The campaign ended because the time that the user set for fuzzing has passed.
    Time,
    /// The campaign ended because the requested number of findings was reached, or nothing new was
    /// found for long enough.
    Until,
    /// The campaign ended because the other fuzzer, which `ddfuzz watch` observed, has ended.
    Fuzzer,
    /// The campaign ended because the user stopped it.
    Interrupted,
}

/// A group of crashes (one bug) in the JSON result of `ddfuzz run`.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct RunGroup {
    /// Major key of the group, which identifies the bug; its first 12 hex digits.
    pub major: String,
    /// Minor key of the crash that represents the group, which identifies the call path to the bug;
    /// its first 12 hex digits.
    pub minor: String,
    /// Class of the group's crashes, such as `segv`.
    pub class: String,
    /// Number of runs, over all campaigns of the output directory, that ended in the group; if
    /// there are none, the number of runs that ended in it while inputs of other groups were
    /// minimized.
    pub runs_seen: u64,
    /// Size of the group's representative input before minimization, in bytes.
    pub size_before: u64,
    /// Size of the smallest known failing input, in bytes.
    pub size_after: u64,
    /// Proved minimality of the smallest known failing input, such as `1-minimal`; null until the
    /// minimization has ended.
    pub claim: Option<String>,
    /// Numbers of the minimization's tests by how they were answered (by a run, a cache, …); null
    /// until the minimization has ended.
    pub tests: Option<Value>,
    /// Path of the smallest known failing input of the group.
    #[serde(serialize_with = "path_text")]
    pub file: PathBuf,
    /// Path of the log of the minimization of the group's input; null if there is none.
    #[serde(serialize_with = "optional_path")]
    pub log: Option<PathBuf>,
    /// The reproducer as parsed by the harness, in Rust's `Debug` format; null if the harness does
    /// not print it.
    pub debug: Option<String>,
    /// Kind of failure that the group's inputs show: crash, flaky crash, hang or out of memory.
    pub kind: Kind,
    /// Estimated severity of the group's bug: low, medium or high.
    pub severity: Severity,
    /// Reason for the estimated severity of the group.
    pub severity_reason: String,
    /// Location of the crash in the user's code; null if unknown.
    pub frame: Option<String>,
    /// Error message of the program, its runtime or a sanitizer; null if there was none.
    pub message: Option<String>,
    /// How often the reproducer fails, if not every time; null if it always fails.
    pub flaky: Option<Rate>,
    /// Location of the crash as `file:line`, from the debug information; null if unknown.
    pub source: Option<String>,
    /// First line of the explanation of the failure and, on a second line, the place at which to
    /// look first, or why nothing could be explained; omitted if `ddfuzz explain` has written no
    /// explanation.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub explanation: Option<String>,
    /// Status of the group (fixed, same, …) after the last rebuild of the program, or `unchecked`
    /// if it is to be checked; null if the program was not rebuilt.
    pub status: Option<Status>,
    /// Location at which the group fails with the last build of the program; omitted if it is the
    /// same as `frame`, or unknown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub frame_now: Option<String>,
    /// Major key of another group, found with an earlier build of the program, that is the same bug
    /// as this group; omitted if no such group is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub known_as: Option<String>,
    /// Result of the last `ddfuzz check` of the group; omitted if there was none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub checked: Option<LastCheck>,
    /// Name of the utility that crashed; only in a study of many utilities.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub utility: Option<String>,
    /// Whether the target crashes on every input; omitted if false.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub any_input: bool,
    /// Reproducers of the group's other minor keys (call paths to the bug), sorted by size; omitted
    /// if there are none.
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
            explanation: view.explanation.clone(),
            status: view.status,
            frame_now: view.place_now.clone(),
            known_as: view.known_as.clone(),
            checked: view.checked.clone(),
            utility: view.utility.clone(),
            any_input: minimized.is_some_and(|minimized| minimized.any_input),
            variants: view.variants.clone(),
        }
    }
}

/// An error as JSON: `{"error":{"kind","message","path","hint"}}`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ErrorReport {
    /// The error itself: its kind, message, path and hint.
    pub error: ErrorBody,
}

/// Kind, message, path and hint of an error, for its JSON form ([`ErrorReport`]).
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ErrorBody {
    /// Name of the error for scripts, such as `disk-full`.
    pub kind: String,
    /// Message that describes the error, a sentence for people.
    pub message: String,
    /// Path of the file or directory that the error is about; null if there is none.
    #[serde(serialize_with = "optional_path")]
    pub path: Option<PathBuf>,
    /// Advice how to solve the problem; null if there is none.
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

/// Serializes a path: a string, or its bytes in base64 if it is not UTF-8.
pub(super) fn path_text<S: Serializer>(path: &Path, serializer: S) -> Result<S::Ok, S::Error> {
    OsText::from(path).serialize(serializer)
}

fn optional_path<S: Serializer>(path: &Option<PathBuf>, serializer: S) -> Result<S::Ok, S::Error> {
    path.as_deref().map(OsText::from).serialize(serializer)
}
