//! The result of `triage`, for scripts and as tables.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::Serialize;

use super::groups::{render, severity};
use super::json::{RunGroup, lossy};
use super::{Trace, size};
use crate::Kind;
use ddfuzz_exec::Way;
use ddfuzz_triage::{Confidence, Severity};

/// The result of `triage`.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct TriageResult {
    /// All inputs.
    pub inputs: Vec<TriageInput>,
    /// The groups that they fall into.
    pub groups: Vec<TriageGroup>,
    /// The groups of the output directory as they are minimized; absent where that was not asked
    /// for.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub minimized: Vec<RunGroup>,
    /// Different contents among the inputs; each was run once.
    pub contents: u64,
    /// Inputs that crashed in some of their tries only.
    pub flaky: u64,
    /// Inputs that do not crash.
    pub healthy: u64,
    /// Inputs that could not be read.
    pub unread: u64,
    /// Whether the user stopped it: inputs that were not run are left out.
    pub interrupted: bool,
    /// What the program was compiled with that decides which crashes it can show: sanitizers, as
    /// `-fsanitize=` names them, and `debug-assertions` of Rust; null where that is not known.
    pub instrumentation: Option<Vec<String>>,
    /// Groups of the directory to compare with that these runs cannot show: that no input crashes
    /// does not mean that they are fixed.
    pub cannot_tell: Vec<CannotTell>,
}

/// A group of another output directory of which runs say nothing.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct CannotTell {
    /// The first 12 hex digits of its major key.
    pub major: String,
    /// What kind of death it was.
    pub class: String,
    /// Why nothing can be said of it.
    pub why: String,
    /// What to do so that something can be said.
    pub hint: String,
}

/// One input in the result of `triage`.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct TriageInput {
    /// Its file.
    #[serde(serialize_with = "lossy")]
    pub file: PathBuf,
    /// How the run ended; null where it was not run.
    pub ended: Option<String>,
    /// What kind of death; null where it does not crash.
    pub class: Option<String>,
    /// The first 12 hex digits of the major key.
    pub major: Option<String>,
    /// The first 12 hex digits of the minor key.
    pub minor: Option<String>,
    /// The way of execution.
    pub way: Option<Way>,
    /// How far the keys can be trusted.
    pub confidence: Option<Confidence>,
    /// Tries that crashed so.
    pub hits: u32,
    /// Tries made.
    pub tries: u32,
    /// Why it was not run; null where it was.
    pub error: Option<String>,
}

/// One group in the result of `triage`.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct TriageGroup {
    /// The first 12 hex digits of the major key.
    pub major: String,
    /// The kind of finding.
    pub kind: Kind,
    /// What kind of death.
    pub class: String,
    /// The highest estimate of its ways in, each through its least input.
    pub severity: Severity,
    /// Why that estimate.
    pub severity_reason: String,
    /// Inputs in it.
    pub count: u64,
    /// The first 12 hex digits of its minor keys.
    pub minors: Vec<String>,
    /// The stable key of the least input, whole; null without symbols.
    pub stable: Option<String>,
    /// The first frame of the user's code, of the least input.
    pub frame: Option<String>,
    /// What the crash of the least input said; null where nothing did.
    pub message: Option<String>,
    /// The same, and its stacks, where they are at hand.
    #[serde(skip)]
    pub trace: Trace,
    /// The same as `file:line`, where that is known, the path as the program has it.
    pub source: Option<String>,
    /// The file of the least input.
    #[serde(serialize_with = "lossy")]
    pub representative: PathBuf,
    /// Size of the least input, in bytes.
    pub size: u64,
    /// Whether the user has muted it.
    pub known: bool,
    /// Whether the directory to compare with has no such group; null where there is none, and where
    /// that cannot be told.
    pub new: Option<bool>,
    /// Why it cannot be told; null where it can.
    pub why: Option<String>,
    /// By what the directory to compare with has it; null where it has not.
    pub same_by: Option<SameBy>,
    /// Whether the target crashes so whatever the input is; absent where it does not.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub any_input: bool,
    /// The build id of the program, by which stable keys are compared or not.
    #[serde(skip)]
    pub build: Option<String>,
}

/// By what two groups are the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum SameBy {
    /// The major key.
    Key,
    /// The names of functions, where the program was built anew.
    Names,
}

impl TriageGroup {
    /// What is to be said of it beside the others.
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

/// The groups of a triage, one line each, no line longer than `width` characters (`None`: as long
/// as need be). Whether they are new stands there only where that is known of one.
pub fn triage_groups_table(groups: &[TriageGroup], width: Option<usize>) -> String {
    let news = groups.iter().any(|group| !group.news().is_empty());
    let row = |group: &TriageGroup| {
        [
            group.kind.folder().to_owned(),
            group.major.clone(),
            group.class.clone(),
            severity(group.severity).to_owned(),
            size::grouped(group.count),
            group.news().to_owned(),
            group.frame.clone().unwrap_or_else(|| "-".to_owned()),
            size::bytes(group.size),
            group.representative.to_string_lossy().into_owned(),
            group.severity_reason.clone(),
        ]
    };
    let header = [
        "KIND", "GROUP", "CLASS", "SEVERITY", "COUNT", "NEWS", "WHERE", "SIZE", "FILE", "WHY",
    ];
    let rows: Vec<[String; 10]> = groups.iter().map(row).collect();
    if news {
        return render(header, rows, width);
    }
    // The same without the column that would be empty.
    let fewer = |[a, b, c, d, e, _, g, h, i, j]: [String; 10]| [a, b, c, d, e, g, h, i, j];
    let [a, b, c, d, e, _, g, h, i, j] = header;
    let rows = rows.into_iter().map(fewer).collect();
    render([a, b, c, d, e, g, h, i, j], rows, width)
}

/// The inputs of a triage, one line each, like [`triage_groups_table`].
pub fn triage_table(result: &TriageResult, width: Option<usize>) -> String {
    let header = ["GROUP", "CLASS", "ENDED", "HITS", "FILE"];
    let rows = result.inputs.iter().map(|input| {
        let or_none = |text: &Option<String>| text.clone().unwrap_or_else(|| "-".to_owned());
        [
            or_none(&input.major),
            or_none(&input.class),
            or_none(input.error.as_ref().map_or(&input.ended, |_| &input.error)),
            format!("{}/{}", input.hits, input.tries),
            input.file.to_string_lossy().into_owned(),
        ]
    });
    render(header, rows.collect(), width)
}

/// What is to be known of groups of which nothing but the class is: they may hold several bugs.
/// `None` where each has more.
pub fn triage_doubts(result: &TriageResult) -> Option<String> {
    // Of an exit status that the user has named there is never more.
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

/// What cannot be told by the comparison with another directory, `None` where all can: of groups
/// whether they are new, and of groups that were not met whether they are fixed.
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
    let mut reasons: BTreeMap<(&str, &str), Vec<&str>> = BTreeMap::new();
    for group in result.cannot_tell.iter().filter(|_| result.healthy > 0) {
        let of_reason = reasons.entry((&group.why, &group.hint)).or_default();
        of_reason.push(&group.major);
    }
    for ((why, hint), groups) in reasons {
        let are = is_or_are(groups.len());
        let groups = groups.join(", ");
        lines.push(format!(
            "cannot tell whether {groups} {are} fixed: {why}\n  to find out: {hint}"
        ));
    }
    (!lines.is_empty()).then(|| lines.join("\n"))
}

/// The verb for so many groups.
pub(super) fn is_or_are(groups: usize) -> &'static str {
    match groups {
        1 => "is",
        _ => "are",
    }
}

/// What a triage came to, in a line.
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
