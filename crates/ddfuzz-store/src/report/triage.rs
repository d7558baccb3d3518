//! The result of `ddfuzz triage`: as JSON and as tables.

use std::{collections::BTreeMap, path::PathBuf};

use serde::Serialize;

use super::groups::{DROPPABLE, or_dash, remove_column, render_columns, severity};
use super::json::{RunGroup, path_text};
use super::{Trace, size};
use crate::Kind;
use ddfuzz_exec::Way;
use ddfuzz_triage::{Confidence, Severity};

/// Result of `ddfuzz triage`: how the runs of each input ended, and the groups (bugs) into which
/// the failing inputs fall.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct TriageResult {
    /// Results of the triaged inputs, one for each input file.
    pub inputs: Vec<TriageInput>,
    /// The groups (bugs) into which the crashes of the inputs fall.
    pub groups: Vec<TriageGroup>,
    /// Groups of the output directory with minimized inputs; omitted if not requested.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub minimized: Vec<RunGroup>,
    /// Number of different contents among the triaged inputs; inputs with the same content are run
    /// only once for all of them.
    pub contents: u64,
    /// Number of triaged inputs that crashed in some runs only.
    pub flaky: u64,
    /// Number of triaged inputs that do not crash.
    pub healthy: u64,
    /// Number of inputs given to `ddfuzz triage` that could not be read.
    pub unread: u64,
    /// Whether the user stopped the triage; inputs that were not run are left out.
    pub interrupted: bool,
    /// Instrumentation of the program, which decides what crashes it can show: sanitizers as in
    /// `-fsanitize=`, and `debug-assertions` of Rust; null if unknown.
    pub instrumentation: Option<Vec<String>>,
    /// Groups of the output directory to compare with (`--against`) on which the triage gives no
    /// verdict, because the program, run as it is, cannot show their crashes.
    pub cannot_tell: Vec<CannotTell>,
}

/// A group of the output directory to compare with (`--against`) for which the triage gives no
/// verdict (new, known or fixed).
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct CannotTell {
    /// Major key (which identifies the bug) of the group without a verdict, its first 12 hex
    /// digits.
    pub major: String,
    /// Class of the crash, such as `segv`, that the other output directory records for the group.
    pub class: String,
    /// Reason why the triage gives no verdict on the group.
    pub why: String,
    /// Advice how to get a verdict on the group, whose crash the program, run as it is, cannot
    /// show.
    pub hint: String,
}

/// A triaged input: how its runs ended, and the class and keys of its crash.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct TriageInput {
    /// Path of the triaged input file.
    #[serde(serialize_with = "path_text")]
    pub file: PathBuf,
    /// How the last run of the input ended; null if the input was not run.
    pub ended: Option<String>,
    /// Class of the crash, such as `segv`; null if the input does not crash.
    pub class: Option<String>,
    /// Major key, which identifies the bug; its first 12 hex digits. Null if the input does not
    /// crash.
    pub major: Option<String>,
    /// Minor key, which identifies the call path to the bug; its first 12 hex digits. Null if the
    /// input does not crash.
    pub minor: Option<String>,
    /// Way in which the target was run when the crash was recorded: fork server, `execve` and so
    /// on. Null if the input does not crash.
    pub way: Option<Way>,
    /// Confidence that the keys of the input's crash identify the bug; null if the input does not
    /// crash.
    pub confidence: Option<Confidence>,
    /// Number of runs of the input that failed, in whatever way. An input that crashes in the same
    /// way as a smaller input is run only once; the smallest input of a minor key (call path to the
    /// bug) is run three times.
    pub hits: u32,
    /// Number of times that the triage ran the input.
    pub tries: u32,
    /// Reason why the input was not run; null if it was.
    pub error: Option<String>,
}

/// A group of triaged inputs that fail with the same major key (one bug).
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct TriageGroup {
    /// Major key, which identifies the bug; its first 12 hex digits.
    pub major: String,
    /// Kind of failure that the group's inputs show: crash, flaky crash, hang or out of memory.
    pub kind: Kind,
    /// Class of the group's crashes, such as `segv`.
    pub class: String,
    /// Highest severity among the group's minor keys (call paths), each estimated from its smallest
    /// input.
    pub severity: Severity,
    /// Reason for the group's estimated severity.
    pub severity_reason: String,
    /// Number of triaged inputs whose crashes are in the group.
    pub count: u64,
    /// Minor keys of the crashes in the group, which identify the call paths to the bug; their
    /// first 12 hex digits.
    pub minors: Vec<String>,
    /// Stable key (made of function names) of the smallest input's crash, all hex digits; null
    /// without symbols.
    pub stable: Option<String>,
    /// Stable keys of the smallest inputs of all call paths (minor keys) in the group, all hex
    /// digits.
    #[serde(skip)]
    pub stables: Vec<String>,
    /// Location of the smallest input's crash in the user's code; null if unknown.
    pub frame: Option<String>,
    /// Error message of the smallest input's crash; null if there was none.
    pub message: Option<String>,
    /// Message and stacks of the smallest input's crash, if available.
    #[serde(skip)]
    pub trace: Trace,
    /// Location of the smallest input's crash as `file:line`, from the debug information; null if
    /// unknown.
    pub source: Option<String>,
    /// Path of the smallest triaged input in the group.
    #[serde(serialize_with = "path_text")]
    pub representative: PathBuf,
    /// Size of the smallest triaged input in the group, in bytes.
    pub size: u64,
    /// Whether the user has muted the group (`--known`).
    pub known: bool,
    /// Whether the directory to compare with (`--against`) lacks the group; null if unknown.
    pub new: Option<bool>,
    /// Reason why it is unknown whether the group is new; null if it is known (`new`).
    pub why: Option<String>,
    /// How the group was matched with a group of the directory to compare with (`--against`); null
    /// if it was not matched.
    pub same_by: Option<SameBy>,
    /// Whether the target crashes on every input; omitted if false.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub any_input: bool,
    /// First line of the explanation of the failure and, on a second line, the place at which to
    /// look first, or why nothing could be explained; omitted if `ddfuzz explain` has written no
    /// explanation.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub explanation: Option<String>,
    /// GNU build id of the program; `None` if it has none. Groups of the same build are not matched
    /// by stable keys (function names).
    #[serde(skip)]
    pub build: Option<String>,
}

/// How two groups of crashes, found in different runs or studies, were recognized as the same bug.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum SameBy {
    /// The two groups have equal major keys (hashes that identify the bug).
    Key,
    /// The two groups have equal stable keys, made of function names; the program was rebuilt
    /// between their runs.
    Names,
}

impl TriageGroup {
    /// Returns the word for the group in the column NEWS of the table of groups: `muted`, `new`,
    /// `known` and so on; empty if there is nothing to say.
    fn news(&self) -> &'static str {
        match (self.known, self.new, self.same_by) {
            (true, ..) => "muted",
            (_, Some(true), _) => "new",
            (_, _, Some(SameBy::Names)) => "same by names",
            (_, Some(false), _) => "known",
            (_, None, _) if self.why.is_some() => "cannot tell",
            (_, None, _) => "",
        }
    }
}

/// Formats the groups of a triage as a table. Lines have at most `width` characters (`None`: no
/// limit). The column NEWS (new, known or muted) is dropped if it is empty.
pub fn triage_groups_table(groups: &[TriageGroup], width: Option<usize>) -> String {
    let row = |group: &TriageGroup| {
        vec![
            group.kind.folder().to_owned(),
            group.major.clone(),
            group.class.clone(),
            severity(group.severity).to_owned(),
            size::grouped(group.count),
            group.news().to_owned(),
            or_dash(&group.frame),
            size::bytes(group.size),
            group.representative.to_string_lossy().into_owned(),
            group.severity_reason.clone(),
        ]
    };
    let mut header = vec![
        "KIND", "GROUP", "CLASS", "SEVERITY", "FILES", "NEWS", "WHERE", "SIZE", "FILE", "WHY",
    ];
    let mut rows: Vec<Vec<String>> = groups.iter().map(row).collect();
    if groups.iter().all(|group| group.news().is_empty()) {
        remove_column("NEWS", &mut header, &mut rows);
    }
    render_columns(&header, rows, width, &DROPPABLE)
}

/// Formats the inputs of a triage as a table. Lines have at most `width` characters (`None`: no
/// limit).
pub fn triage_table(result: &TriageResult, width: Option<usize>) -> String {
    let header = ["GROUP", "CLASS", "ENDED", "HITS", "FILE"];
    let rows = result.inputs.iter().map(|input| {
        let ended = input.error.as_ref().or(input.ended.as_ref());
        vec![
            or_dash(&input.major),
            or_dash(&input.class),
            or_dash(&ended.cloned()),
            format!("{}/{}", input.hits, input.tries),
            input.file.to_string_lossy().into_owned(),
        ]
    });
    render_columns(&header, rows.collect(), width, &DROPPABLE)
}

/// Formats a note on those groups of the triage for which only the class of the crash is known,
/// because one such group may contain several bugs; `None` if there are none.
pub fn triage_doubts(result: &TriageResult) -> Option<String> {
    // For an exit status that the user declared a crash, only the class is ever known.
    let rests_on_class = |group: &&TriageGroup| {
        group.frame.is_none() && group.kind != Kind::Flaky && !group.class.starts_with("exit:")
    };
    let count = result.groups.iter().filter(rests_on_class).count() as u64;
    (count > 0).then(|| {
        let groups = size::counted(count, "group");
        format!(
            "note: of {groups} only the class is known (WHERE is -), so that one may contain several \
             bugs; if ptrace is refused, `ddfuzz doctor` shows how to allow it"
        )
    })
}

/// Formats what the comparison with another output directory (`--against`) could not decide:
/// whether groups are new, and whether groups that no triaged input shows any more are fixed.
/// `None` if all is decided.
pub fn triage_cannot_tell(result: &TriageResult) -> Option<String> {
    let mut lines = Vec::new();
    let mut reasons: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for group in &result.groups {
        if let Some(why) = &group.why {
            reasons.entry(why).or_default().push(&group.major);
        }
    }
    for (why, groups) in reasons {
        let are = is_or_are(groups.len());
        let groups = groups.join(", ");
        lines.push(format!("cannot tell whether {groups} {are} new: {why}"));
    }
    let undecided = result.cannot_tell.iter().filter(|_| result.healthy > 0);
    let undecided = undecided.map(|group| (&*group.why, &*group.hint, &*group.major));
    lines.extend(undecided_lines(undecided));
    (!lines.is_empty()).then(|| lines.join("\n"))
}

/// Formats lines that name the groups for which it is undecided whether they are fixed: two lines
/// for all groups with the same reason and advice. `groups` has one element for each group: the
/// reason why it is undecided, advice to the user, and the group's major key.
pub(super) fn undecided_lines<'a>(
    groups: impl Iterator<Item = (&'a str, &'a str, &'a str)>,
) -> Vec<String> {
    let mut reasons: BTreeMap<(&str, &str), Vec<&str>> = BTreeMap::new();
    for (why, hint, major) in groups {
        reasons.entry((why, hint)).or_default().push(major);
    }
    let lines = reasons.into_iter().map(|((why, hint), groups)| {
        let are = is_or_are(groups.len());
        let groups = groups.join(", ");
        format!("cannot tell whether {groups} {are} fixed: {why}\n  to find out: {hint}")
    });
    lines.collect()
}

/// Returns `is` or `are`, as fits the number of groups.
fn is_or_are(groups: usize) -> &'static str {
    match groups {
        1 => "is",
        _ => "are",
    }
}

/// Formats the counts of a triage as one line: files, failing inputs, groups, inputs that do not
/// fail.
pub fn triage_summary(result: &TriageResult) -> String {
    let files = result.inputs.len() as u64;
    let mut parts = vec![format!(
        "{} failing in {}",
        size::grouped(files - result.healthy - result.unread),
        size::counted(result.groups.len() as u64, "group"),
    )];
    for (count, what) in [
        (result.flaky, "flaky"),
        (result.healthy, "not failing"),
        (result.unread, "not read"),
    ] {
        if count > 0 {
            parts.push(format!("{} {what}", size::grouped(count)));
        }
    }
    let contents = match result.contents + result.unread == files {
        true => String::new(),
        false => format!(" ({} different)", size::grouped(result.contents)),
    };
    let files = size::counted(files, "file");
    format!("{files}{contents}: {}", parts.join(", "))
}
