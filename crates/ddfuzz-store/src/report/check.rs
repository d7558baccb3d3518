//! The result of `check`, for scripts and as a table.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::Serialize;

use super::groups::render_columns;
use super::json::lossy;
use super::size;
use super::triage::is_or_are;
use crate::{Kind, Status};

/// The result of `check`.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct CheckResult {
    /// The groups.
    pub groups: Vec<CheckedGroup>,
    /// How many of them do not fail any more.
    pub fixed: u64,
    /// How many fail as they did.
    pub same: u64,
    /// How many fail otherwise.
    pub other: u64,
    /// Of how many nothing can be said: what was run could not show them.
    pub cannot_tell: u64,
    /// How many fail now and then, so that nothing can be said.
    pub flaky: u64,
    /// Groups of a study whose programs are gone; present where there are any.
    #[serde(skip_serializing_if = "crate::json::is_zero")]
    pub not_run: u64,
}

/// One group in the result of `check`.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct CheckedGroup {
    /// The first 12 hex digits of the major key on record.
    pub major: String,
    /// The kind of finding.
    pub kind: Kind,
    /// What kind of death it was.
    pub class: String,
    /// Where it was in the user's code.
    pub frame: Option<String>,
    /// What became of it.
    pub status: Status,
    /// Why nothing can be said; null where something can.
    pub why: Option<String>,
    /// What to do so that something can be said; null where something can.
    pub hint: Option<String>,
    /// How it fails now; null where it does not.
    pub now: Option<CurrentFailure>,
    /// The input that says so; of a fixed group, its least one.
    #[serde(serialize_with = "lossy")]
    pub file: PathBuf,
    /// Inputs that were run.
    pub inputs: u64,
    /// Which utility that is an input of; present in a study of many.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub utility: Option<String>,
}

/// How an input fails now.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct CurrentFailure {
    /// What kind of death.
    pub class: String,
    /// The first 12 hex digits of the major key.
    pub major: String,
    /// The first 12 hex digits of the minor key.
    pub minor: String,
    /// Where in the user's code.
    pub frame: Option<String>,
}

impl CheckResult {
    /// Adds a group.
    pub fn add(&mut self, group: CheckedGroup) {
        match group.status {
            Status::Fixed => self.fixed += 1,
            Status::CannotTell => self.cannot_tell += 1,
            Status::Flaky => self.flaky += 1,
            Status::Other => self.other += 1,
            Status::Same => self.same += 1,
        }
        self.groups.push(group);
    }
}

/// Why nothing can be said of some groups, and what to do: two lines for each reason.
fn doubts(result: &CheckResult) -> String {
    let mut reasons: BTreeMap<(&str, &str), Vec<&str>> = BTreeMap::new();
    for group in &result.groups {
        if let (Some(why), Some(hint)) = (&group.why, &group.hint) {
            let groups = reasons.entry((why, hint)).or_default();
            groups.push(&group.major);
        }
    }
    let each = reasons.into_iter().map(|((why, hint), groups)| {
        let are = is_or_are(groups.len());
        let groups = groups.join(", ");
        format!("cannot tell whether {groups} {are} fixed: {why}\n  to find out: {hint}\n")
    });
    each.collect()
}

/// The groups, one line each, no line longer than `width` characters (`None`: as long as need be),
/// and what they come to.
pub fn check_table(result: &CheckResult, width: Option<usize>) -> String {
    let mut header = vec![
        "UTILITY", "STATUS", "KIND", "GROUP", "CLASS", "WHERE", "NOW", "FILE",
    ];
    let or_none = |text: &Option<String>| text.clone().unwrap_or_else(|| "-".to_owned());
    let rows = result.groups.iter().map(|group| {
        let now = match &group.now {
            Some(now) if group.status == Status::Same && now.major == group.major => {
                or_none(&now.frame)
            }
            Some(now) => format!("{} {} {}", now.class, now.major, or_none(&now.frame)),
            None => "-".to_owned(),
        };
        vec![
            or_none(&group.utility),
            group.status.name().to_owned(),
            group.kind.folder().to_owned(),
            group.major.clone(),
            group.class.clone(),
            or_none(&group.frame),
            now,
            group.file.to_string_lossy().into_owned(),
        ]
    });
    let mut rows: Vec<Vec<String>> = rows.collect();
    if result.groups.iter().all(|group| group.utility.is_none()) {
        // Of one program only.
        header.remove(0);
        rows.iter_mut().for_each(|row| drop(row.remove(0)));
    }
    let table = match result.groups.is_empty() {
        true => String::new(),
        false => render_columns(&header, rows, width, &["KIND"]),
    };
    let cannot_tell = match result.cannot_tell {
        0 => String::new(),
        count => format!("; {} undecided", size::grouped(count)),
    };
    let not_run = match result.not_run {
        0 => String::new(),
        count => format!(
            "; {} not run, because their programs no longer exist",
            size::grouped(count)
        ),
    };
    format!(
        "{table}{}{}: {} fixed, {} still failing, {} failing differently, {} flaky{cannot_tell}{not_run}",
        doubts(result),
        size::counted(result.groups.len() as u64, "group"),
        size::grouped(result.fixed),
        size::grouped(result.same),
        size::grouped(result.other),
        size::grouped(result.flaky),
    )
}
