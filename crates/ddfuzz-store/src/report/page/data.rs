//! The data of a campaign's report, which its page shows and `ddfuzz report --json` prints.

use std::collections::BTreeMap;
use std::path::Path;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::StatsPoint;
use crate::{Campaign, CodeCoverage};
use ddfuzz_exec::TargetRecord;
use ddfuzz_model::files::printable;
use ddfuzz_model::files::shell::quoted;

/// Report on an output directory: its campaigns, their course, and all groups.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CampaignReport {
    /// Version of ddfuzz that made the report.
    pub ddfuzz: String,
    /// Time when the report was made, as RFC 3339 in UTC.
    pub made: String,
    /// Absolute path of the output directory.
    pub out: String,
    /// Campaigns whose findings are in the directory, its own first.
    pub campaigns: Vec<CampaignFacts>,
    /// Course of the directory's own campaign: at most 301 points, oldest first; empty for a study
    /// of many utilities.
    pub stats: Vec<StatsPoint>,
    /// Which code of an unmodified program the directory's own campaign has reached; null where
    /// that is not recorded.
    pub code: Option<CodeCoverage>,
    /// All groups: crashes, flaky crashes, hangs, out of memory; each kind by severity, then by
    /// number of runs.
    pub groups: Vec<GroupReport>,
}

/// A campaign, as recorded in `ddfuzz.json`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CampaignFacts {
    /// Id of the campaign.
    pub id: String,
    /// Command line that started the campaign, as words of a shell.
    pub command: String,
    /// The target and its arguments, as words of a shell; null for a study of many utilities.
    pub target: Option<String>,
    /// Ways of execution that the campaign has used.
    pub ways: Vec<String>,
    /// Seed of the input generator; null where there is none.
    pub seed: Option<u64>,
    /// Start of the campaign, as RFC 3339 in UTC.
    pub started: String,
    /// Host name of the machine.
    pub host: String,
}

impl From<&Campaign> for CampaignFacts {
    fn from(campaign: &Campaign) -> CampaignFacts {
        let words = campaign.command_line.iter();
        CampaignFacts {
            id: campaign.id.clone(),
            command: shell(words.map(|word| word.0.as_encoded_bytes())),
            target: campaign.target.as_ref().map(target_words),
            ways: campaign.ways.iter().map(ToString::to_string).collect(),
            seed: campaign.seed,
            started: campaign.started.clone(),
            host: campaign.host.clone(),
        }
    }
}

/// Formats a recorded target as words of a shell: its program (for a bundled one, its name) and its
/// arguments.
fn target_words(target: &TargetRecord) -> String {
    let program = match (&target.bundled, &target.program) {
        (Some(name), _) => name.as_bytes(),
        (None, Some(path)) => path.0.as_encoded_bytes(),
        (None, None) => b"?",
    };
    let arguments = target.args.iter().map(|word| word.0.as_encoded_bytes());
    shell(std::iter::once(program).chain(arguments))
}

/// Quotes words for a shell where they need it, and escapes control characters.
pub(super) fn shell<'a>(words: impl Iterator<Item = &'a [u8]>) -> String {
    let plain = |byte: &u8| byte.is_ascii_alphanumeric() || b"/._-+:,@%=".contains(byte);
    let words: Vec<String> = words
        .map(|word| match !word.is_empty() && word.iter().all(plain) {
            true => String::from_utf8_lossy(word).into_owned(),
            false => printable(&String::from_utf8_lossy(&quoted(word))),
        })
        .collect();
    words.join(" ")
}

/// Makes a path absolute, as text; invalid UTF-8 becomes replacement characters.
pub(super) fn absolute(path: &Path) -> String {
    let absolute = std::path::absolute(path);
    let absolute = absolute.as_deref().unwrap_or(path);
    absolute.to_string_lossy().into_owned()
}

/// What a table of groups shows of one group.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct GroupSummary {
    /// Kind of the group: `crash`, `flaky`, `hang` or `oom`.
    pub kind: String,
    /// Major key, which identifies the bug; its first 12 hex digits.
    pub major: String,
    /// Class of the crash, such as `segv`.
    pub class: String,
    /// Estimated severity: `high`, `medium` or `low`.
    pub severity: String,
    /// Reason for the estimated severity.
    pub severity_reason: String,
    /// What failed, in a sentence: the message of a panic or sanitizer, or the signal and the
    /// access.
    pub sentence: String,
    /// Location of the crash in the user's code; null if unknown.
    pub place: Option<String>,
    /// Size of the input as found, in bytes.
    pub size_before: u64,
    /// Size of the smallest known failing input, in bytes.
    pub size_after: u64,
    /// Number of runs that ended in the group.
    pub runs_seen: u64,
    /// Time when the group's first input was stored, as RFC 3339 in UTC.
    pub first_seen: String,
    /// Proved minimality and flakiness in a few words, and after a rebuild whether the bug is
    /// fixed; `-` if nothing is known.
    pub status: String,
    /// Utility that crashed, in a study of many utilities; else null.
    pub utility: Option<String>,
}

impl GroupSummary {
    /// Returns the name of the group's section in the page, for links.
    pub fn anchor(&self) -> String {
        format!("{}-{}", self.kind, self.major)
    }
}

/// A group with all that a reader needs to understand and reproduce it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct GroupReport {
    /// What a table of groups shows of the group.
    #[serde(flatten)]
    pub summary: GroupSummary,
    /// Minor key (call path to the bug) of the shown input; its first 12 hex digits.
    pub minor: String,
    /// Message of the program, its runtime or a sanitizer, of several lines; null if there was
    /// none.
    pub message: Option<String>,
    /// The stack at the crash, then the stacks where the memory concerned was allocated and freed.
    pub stacks: Vec<StackReport>,
    /// Source lines at the innermost user functions, where the files are found.
    pub sources: Vec<SourceReport>,
    /// How the run ended: the signal, exit status or limit.
    pub ended: String,
    /// The memory access that faulted.
    pub fault: FaultReport,
    /// Values of the registers, as hexadecimal text, by name.
    pub registers: BTreeMap<String, String>,
    /// What the program wrote to stderr last, 4 KiB at most; empty if it was silent.
    pub stderr: String,
    /// Sentence on the reproducer: its minimality, how far that is proved, and whether it fails
    /// every time.
    pub claim: String,
    /// The removals that prove the minimality; null until the minimization has ended.
    pub proved: Option<ProvedReport>,
    /// Tests that the minimization executed; null until it has ended.
    pub tests: Option<u64>,
    /// The call paths to the bug, with the number of stored inputs of each, most frequent first.
    pub variants: Vec<VariantReport>,
    /// The inputs that are stored of the group, smallest first; 20 at most.
    pub inputs: Vec<InputReport>,
    /// Number of all inputs that are stored of the group.
    pub inputs_of: u64,
    /// Absolute path of the input as found.
    pub original: String,
    /// Absolute path of the smallest known failing input.
    pub file: String,
    /// Absolute path of the minimization log; null if there is none.
    pub log: Option<String>,
    /// Absolute path of `reproduce.sh`; null if there is none.
    pub script: Option<String>,
    /// Ranges `[start, end]` of the input as found, in bytes, that are in the reproducer; null if
    /// the minimization log does not tell.
    pub kept: Option<Vec<[u64; 2]>>,
    /// Ranges `[start, end]` of the reproducer, in bytes, that the minimization wrote in place of
    /// others; null if the log does not tell.
    pub replaced: Option<Vec<[u64; 2]>>,
    /// The course of the minimization; null without a log.
    pub course: Option<CourseReport>,
    /// Commands that show the crash, each with what it is for: `shell`, `gdb`, `cargo`, `ddfuzz`.
    pub commands: Vec<CommandReport>,
    /// A test that fails as long as the program does; null if none can be written.
    pub test: Option<TestReport>,
    /// The reproducer as parsed by the harness; null if the harness does not print it.
    pub debug: Option<String>,
    /// What `ddfuzz explain` found out; null if it was not asked.
    pub explanation: Option<ExplanationReport>,
}

/// A stack of a crash.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct StackReport {
    /// `stack` (the crash), `alloc`, `origin` (allocation of the memory concerned) or `freed`.
    pub title: String,
    /// Lines of the stack, from the innermost frame of the user's code outwards. Consecutive frames
    /// of runtimes are folded into one line; those inside of the innermost user frame come last.
    pub lines: Vec<StackLine>,
}

/// A line of a stack.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct StackLine {
    /// Number of the frame, function and source line; or a note on frames that are left out.
    pub text: String,
    /// Whether the frame is the user's code.
    pub own: bool,
}

/// Source lines around a location of a crash.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SourceReport {
    /// Absolute path of the source file.
    pub file: String,
    /// The line that the crash is at, from 1.
    pub line: u64,
    /// Number of the first shown line, from 1.
    pub first: u64,
    /// The shown lines.
    pub lines: Vec<String>,
    /// Whether the file was modified after the crash, so that its lines may differ.
    pub is_newer: bool,
    /// Number of the frame in the stack; null for the location of the crash itself.
    pub frame: Option<u64>,
}

/// The memory access that faulted; unknown parts are null.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FaultReport {
    /// Address of the access, as hexadecimal text.
    pub address: Option<String>,
    /// What is mapped at the address: `null`, `stack`, `heap`, `image`, `unmapped`, …
    pub class: Option<String>,
    /// `read`, `write` or `execute`.
    pub access: Option<String>,
}

/// How far the minimality of a reproducer is proved.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ProvedReport {
    /// `1-minimal`, `2-minimal` or `best-so-far`.
    pub claim: String,
    /// Number of removals that were tested and do not fail.
    pub done: u64,
    /// Number of removals that the proof has to test.
    pub of: u64,
}

/// A call path to the bug (a minor key).
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct VariantReport {
    /// Minor key; its first 12 hex digits.
    pub minor: String,
    /// Number of stored inputs that reach the bug by this call path.
    pub inputs: u64,
    /// The user function that called the crashing one; null if unknown.
    pub caller: Option<String>,
    /// Size of the smallest failing input, in bytes.
    pub size: u64,
    /// Minimality of that input; null until its minimization has ended.
    pub claim: Option<String>,
}

/// A stored input of a group.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct InputReport {
    /// Name of the input: 16 hex digits of its blake3 hash.
    pub hash: String,
    /// Minor key; its first 12 hex digits.
    pub minor: String,
    /// Size of the input as found, in bytes.
    pub size_before: u64,
    /// Size of the smallest failing input made of it, in bytes.
    pub size_after: u64,
    /// How the input was found: by which run, file or minimization; null if not recorded.
    pub found: Option<String>,
    /// Absolute path of the smallest failing input made of it.
    pub file: String,
}

/// The course of a minimization.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CourseReport {
    /// Name of the search.
    pub search: String,
    /// Size of the input as found, in bytes.
    pub size_before: u64,
    /// Number of tests that ran the target.
    pub executed: u64,
    /// Sizes of the best input in bytes, each after the given number of executed tests; 401 pairs
    /// at most.
    pub curve: Vec<[u64; 2]>,
    /// Passes of the search in the order of the tests.
    pub phases: Vec<PhaseReport>,
}

/// A stretch of a minimization in which one pass of the search made the tests.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PhaseReport {
    /// Name of the pass; `proof` for the proof of minimality.
    pub name: String,
    /// Number of executed tests before the phase.
    pub from: u64,
    /// Number of executed tests at the end of the phase.
    pub to: u64,
    /// Bytes that the phase removed.
    pub removed: u64,
}

/// A command line that shows a crash.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CommandReport {
    /// What the command is for: `shell`, `gdb`, `cargo` or `ddfuzz`.
    pub name: String,
    /// The command line, for a shell.
    pub command: String,
}

/// A test of a group's bug, as `ddfuzz export` writes it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TestReport {
    /// Form of the test: `rust-test` or `c-test`.
    pub form: String,
    /// Text of the test.
    pub text: String,
}

/// An explanation that lies beside a group's input.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ExplanationReport {
    /// The explanation as text. An `explanation.txt` over 64 KiB is left out.
    pub text: String,
    /// Absolute path of the explanation's HTML page; null if there is none.
    pub page: Option<String>,
}
