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

/// Report on an output directory: its campaigns, the statistics of its own campaign over time, and
/// all groups of crashes.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CampaignReport {
    /// Version of ddfuzz that made the report.
    pub ddfuzz: String,
    /// Time when the report was made, as RFC 3339 in UTC.
    pub made: String,
    /// Absolute path of the output directory that the report is about.
    pub out: String,
    /// Campaigns whose findings are in the directory, its own first.
    pub campaigns: Vec<CampaignFacts>,
    /// Statistics of the directory's own campaign over time: at most 301 points, oldest first;
    /// empty for a study of many utilities.
    pub stats: Vec<StatsPoint>,
    /// Which code of an unmodified program the directory's own campaign has reached; null where
    /// that is not recorded.
    pub code: Option<CodeCoverage>,
    /// All groups of crashes, flaky crashes, hangs and out-of-memory failures, in this order; each
    /// kind is sorted by severity, then by number of runs.
    pub groups: Vec<GroupReport>,
}

/// Facts on a campaign whose findings are in the output directory, as recorded in `ddfuzz.json`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CampaignFacts {
    /// Id of the campaign, unique among all campaigns.
    pub id: String,
    /// Command line that started the campaign, as words of a shell.
    pub command: String,
    /// The target and its arguments, as words of a shell; null for a study of many utilities.
    pub target: Option<String>,
    /// Ways of execution (fork server, `execve`, …) that the campaign has used.
    pub ways: Vec<String>,
    /// Seed of the input generator; null if the campaign has no generator.
    pub seed: Option<u64>,
    /// Start of the campaign, as RFC 3339 in UTC.
    pub started: String,
    /// Host name of the machine on which the campaign started.
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

/// Quotes words for a shell where they need it, escapes control characters, and joins the words
/// with blanks.
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

/// Summary of a group of crashes, as a row of the table of groups shows it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct GroupSummary {
    /// Kind of failure that the group's inputs show: `crash`, `flaky`, `hang` or `oom`.
    pub kind: String,
    /// Major key of the group, which identifies the bug; its first 12 hex digits.
    pub major: String,
    /// Class of the group's crashes, such as `segv`.
    pub class: String,
    /// Estimated severity of the group's bug: `high`, `medium` or `low`.
    pub severity: String,
    /// Reason for the estimated severity of the group.
    pub severity_reason: String,
    /// Sentence that says what failed: the first line of the crash's message or, without a message,
    /// the signal and the memory access.
    pub sentence: String,
    /// Location of the crash in the user's code; null if unknown.
    pub place: Option<String>,
    /// Size of the group's input before minimization, in bytes.
    pub size_before: u64,
    /// Size of the smallest known failing input of the group, in bytes.
    pub size_after: u64,
    /// Number of runs, over all campaigns, that ended in the group; if there are none, the number
    /// of runs that ended in it while inputs of other groups were minimized.
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
    /// Returns the id of the group's section in the HTML page, to which links lead.
    pub fn anchor(&self) -> String {
        format!("{}-{}", self.kind, self.major)
    }
}

/// All data on a group of crashes that a reader needs to understand and reproduce the bug.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct GroupReport {
    /// Summary of the group, as the table of groups shows it.
    #[serde(flatten)]
    pub summary: GroupSummary,
    /// Minor key (call path to the bug) of the shown input; its first 12 hex digits.
    pub minor: String,
    /// Message of the program, its runtime or a sanitizer, which may have several lines; null if
    /// there was none.
    pub message: Option<String>,
    /// The stack at the crash, then the stacks where the memory concerned was allocated and freed.
    pub stacks: Vec<StackReport>,
    /// Source lines around at most three locations of the crash and of the calls that led to it,
    /// likeliest first; locations whose source file is not found are left out.
    pub sources: Vec<SourceReport>,
    /// How the crashing run of the group's shown input ended: by which signal, exit status or
    /// limit.
    pub ended: String,
    /// The memory access that faulted in the crash.
    pub fault: FaultReport,
    /// Values of the CPU registers at the crash, as hexadecimal text, by name of the register.
    pub registers: BTreeMap<String, String>,
    /// End of what the crashing program wrote to stderr, 4 KiB at most; empty if it wrote nothing.
    pub stderr: String,
    /// Sentence on the reproducer: its minimality, how much of this is proved, and whether it fails
    /// every time.
    pub claim: String,
    /// How far the minimality of the reproducer is proved; null until the minimization has ended.
    pub proved: Option<ProvedReport>,
    /// Number of tests that the minimization executed; null until it has ended.
    pub tests: Option<u64>,
    /// The call paths to the bug (minor keys) in the group, the most frequent first.
    pub variants: Vec<VariantReport>,
    /// The stored inputs of the group, at most 20, those with the smallest reproducers first.
    pub inputs: Vec<InputReport>,
    /// Number of all stored inputs of the group.
    pub inputs_of: u64,
    /// Absolute path of the group's shown input as found, before minimization.
    pub original: String,
    /// Absolute path of the smallest known failing input of the group.
    pub file: String,
    /// Absolute path of the log of the minimization of the group's input; null if there is none.
    pub log: Option<String>,
    /// Absolute path of the group's `reproduce.sh`, which shows the crash without ddfuzz; null if
    /// there is none.
    pub script: Option<String>,
    /// Byte ranges `[start, end]` (without the byte at `end`) of the input before minimization that
    /// the reproducer still contains; null if the minimization log does not tell.
    pub kept: Option<Vec<[u64; 2]>>,
    /// Byte ranges `[start, end]` (without the byte at `end`) of the reproducer that hold new
    /// bytes, which the minimization wrote in place of other bytes; null if the minimization log
    /// does not tell.
    pub replaced: Option<Vec<[u64; 2]>>,
    /// The course of the minimization: sizes and phases over the executed tests; null without a
    /// readable minimization log.
    pub course: Option<CourseReport>,
    /// Commands that show the crash, each with the name of its kind: `shell`, `gdb`, `cargo`,
    /// `ddfuzz`.
    pub commands: Vec<CommandReport>,
    /// A regression test, which fails as long as the bug is in the program; null if none can be
    /// written.
    pub test: Option<TestReport>,
    /// The reproducer as parsed by the harness, in Rust's `Debug` format; null if the harness does
    /// not print it.
    pub debug: Option<String>,
    /// The explanation of the failure that `ddfuzz explain` has written; null if there is none.
    pub explanation: Option<ExplanationReport>,
}

/// One stack of a crash (of the crash itself, or of an allocation or `free` of memory), formatted
/// as lines.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct StackReport {
    /// Title of the stack: `stack` (the crash), `alloc` or `origin` (allocation of the memory
    /// concerned), or `freed`.
    pub title: String,
    /// Lines of the stack, from the innermost frame of the user's code outwards. Consecutive frames
    /// of runtimes are folded into one line; frames that the innermost user frame has called come
    /// last.
    pub lines: Vec<StackLine>,
}

/// One line of a formatted stack.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct StackLine {
    /// Text of a line of a formatted stack: number of a frame, function and source line; or a note
    /// on frames that are left out.
    pub text: String,
    /// Whether the line of the formatted stack shows a frame of the user's code.
    pub own: bool,
}

/// Source lines around one location of a crash or of a call that led to it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SourceReport {
    /// Absolute path of the source file whose lines are shown.
    pub file: String,
    /// Number of the source line of the crash, or of the call that led to it, from 1.
    pub line: u64,
    /// Number of the first source line that is shown, from 1.
    pub first: u64,
    /// The source lines that are shown, without control characters.
    pub lines: Vec<String>,
    /// Whether the source file was modified after the crash, so that its lines may differ from
    /// those of the crashed program.
    pub is_newer: bool,
    /// Number of the stack frame that the source lines belong to; null for the location of the
    /// crash itself.
    pub frame: Option<u64>,
}

/// The memory access that faulted in a crash; unknown details are null.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FaultReport {
    /// Address of the memory access that faulted, as hexadecimal text; null if unknown.
    pub address: Option<String>,
    /// What is mapped at the address of the fault: `null`, `stack`, `heap`, `image`, `unmapped`, …;
    /// null if unknown.
    pub class: Option<String>,
    /// Kind of the memory access that faulted: `read`, `write` or `execute`; null if unknown.
    pub access: Option<String>,
}

/// How far the minimality of a reproducer is proved.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ProvedReport {
    /// Proved minimality of the reproducer: `1-minimal`, `2-minimal` or `best-so-far`.
    pub claim: String,
    /// Number of removals of parts of the reproducer that were tested and do not fail, so that the
    /// parts are necessary.
    pub done: u64,
    /// Number of removals of parts of the reproducer that the proof has to test.
    pub of: u64,
}

/// A call path to the bug of a group (a minor key), with the inputs that take it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct VariantReport {
    /// Minor key, which identifies the call path to the bug; its first 12 hex digits.
    pub minor: String,
    /// Number of stored inputs that reach the bug by this call path.
    pub inputs: u64,
    /// The user function that called the crashing function on this call path; null if unknown.
    pub caller: Option<String>,
    /// Size of the smallest failing input that takes the call path, in bytes.
    pub size: u64,
    /// Proved minimality of the smallest failing input that takes the call path; null until its
    /// minimization has ended.
    pub claim: Option<String>,
}

/// A stored input of a group of crashes: its keys, sizes, origin and file.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct InputReport {
    /// Name of the stored input: 16 hex digits of its blake3 hash.
    pub hash: String,
    /// Minor key of the input's crash, which identifies the call path to the bug; its first 12 hex
    /// digits.
    pub minor: String,
    /// Size of the stored input before minimization, in bytes.
    pub size_before: u64,
    /// Size of the smallest known failing input that the minimization has made of this stored
    /// input, in bytes.
    pub size_after: u64,
    /// How the stored input was found: by which run, file or minimization; null if not recorded.
    pub found: Option<String>,
    /// Absolute path of the smallest known failing input that the minimization has made of this
    /// stored input.
    pub file: String,
}

/// The course of a minimization: sizes of the best input and phases over the executed tests.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CourseReport {
    /// Name of the search algorithm that the minimization used.
    pub search: String,
    /// Size of the input before the minimization, in bytes.
    pub size_before: u64,
    /// Number of tests of the minimization that ran the target.
    pub executed: u64,
    /// Curve of the minimization: pairs of a number of executed tests and the size of the best
    /// input after these tests, in bytes; at most 401 pairs.
    pub curve: Vec<[u64; 2]>,
    /// Phases of the minimization (stretches of tests made by one pass), in the order of the tests.
    pub phases: Vec<PhaseReport>,
}

/// A phase of a minimization: a stretch of tests made by one pass of the search, or by several if
/// short phases were joined.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PhaseReport {
    /// Name of the pass that made the tests of the phase; `proof` for the proof of minimality. The
    /// names of joined phases are separated by ` + `.
    pub name: String,
    /// Number of tests of the minimization executed before the phase.
    pub from: u64,
    /// Number of tests of the minimization executed up to the end of the phase.
    pub to: u64,
    /// Number of bytes by which the best input became smaller in the phase.
    pub removed: u64,
}

/// A command line that shows a crash, with the name of its kind.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CommandReport {
    /// Kind of the command: `shell` (the script `reproduce.sh`), `gdb`, `cargo` or `ddfuzz`.
    pub name: String,
    /// The command line that shows the crash, quoted for a shell.
    pub command: String,
}

/// A regression test for a group's bug, as `ddfuzz export` writes it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TestReport {
    /// Form of the regression test: `rust-test` or `c-test`.
    pub form: String,
    /// Source text of the regression test.
    pub text: String,
}

/// An explanation of a group's failure by `ddfuzz explain`, stored beside one of the group's
/// inputs.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ExplanationReport {
    /// Text of the explanation, from an `explanation.txt` of at most 64 KiB.
    pub text: String,
    /// Absolute path of the explanation's HTML page; null if there is none.
    pub page: Option<String>,
}
