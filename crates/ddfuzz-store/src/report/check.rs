//! The result of `ddfuzz check` (are known crashes fixed?): as JSON and as a table.

use std::path::PathBuf;

use serde::Serialize;

use super::groups::{or_dash, remove_column, render_columns};
use super::json::path_text;
use super::size;
use super::triage::undecided_lines;
use crate::{Kind, Status};

/// Result of `ddfuzz check`: the verdict on each group, and the numbers of groups by verdict.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct CheckResult {
    /// The checked groups of crashes, each with its verdict.
    pub groups: Vec<CheckedGroup>,
    /// Number of checked groups of crashes whose inputs no longer fail.
    pub fixed: u64,
    /// Number of checked groups of crashes whose inputs still fail with the recorded crash.
    pub same: u64,
    /// Number of checked groups of crashes whose inputs now fail with another crash than the
    /// recorded one.
    pub other: u64,
    /// Number of checked groups of crashes without a verdict, because the program, run as it was,
    /// could not show the crash.
    pub cannot_tell: u64,
    /// Number of checked groups of crashes without a verdict, because their inputs fail in some
    /// runs only.
    pub flaky: u64,
    /// Number of groups of crashes that were not run, because their program no longer exists or
    /// none of their inputs is complete; omitted if 0.
    #[serde(skip_serializing_if = "crate::json::is_zero")]
    pub not_run: u64,
    /// Number of groups, among those counted in `not_run`, whose inputs all have a missing or
    /// damaged crash record; omitted if 0.
    #[serde(skip_serializing_if = "crate::json::is_zero")]
    pub incomplete: u64,
}

/// A group of crashes that `ddfuzz check` has run again: the recorded crash, the verdict, and how
/// the group's input fails with the current program.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct CheckedGroup {
    /// Major key recorded for the group, which identifies the bug; its first 12 hex digits.
    pub major: String,
    /// Kind of failure that the group's inputs show: crash, flaky crash, hang or out of memory.
    pub kind: Kind,
    /// Class of the crash recorded for the group, such as `segv`.
    pub class: String,
    /// Location, in the user's code, of the crash recorded for the group; null if unknown.
    pub frame: Option<String>,
    /// Verdict of `ddfuzz check` on the group: fixed, same, other, flaky or cannot tell.
    pub status: Status,
    /// Reason why `ddfuzz check` gives no verdict on the group; null if it gives one.
    pub why: Option<String>,
    /// Advice how to get a verdict on the group; null if it has a verdict.
    pub hint: Option<String>,
    /// How the input of the checked group fails with the current program; null if the group no
    /// longer fails.
    pub now: Option<CurrentFailure>,
    /// Path of the input whose run decided the verdict on the group; for a fixed group, path of its
    /// smallest input.
    #[serde(serialize_with = "path_text")]
    pub file: PathBuf,
    /// Number of the group's stored inputs that `ddfuzz check` ran.
    pub inputs: u64,
    /// Name of the utility that the group's input is for; only in a study of many utilities.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub utility: Option<String>,
    /// The commits between which the group started to fail again, after an earlier check had found
    /// it fixed; omitted if no check of another commit found it fixed, or if the group does not
    /// fail as before now.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub came_back: Option<CameBack>,
    /// Whether `file` is an input as found, before minimization, that still fails although the
    /// result of its minimization no longer does.
    #[serde(skip)]
    pub has_passing_result: bool,
    /// Whether the group fails as before only if it is checked alone, not if other groups are
    /// checked at the same time; omitted if false.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub is_disturbed: bool,
}

/// The commits between which a group of crashes started to fail again, after an earlier check had
/// found it fixed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct CameBack {
    /// Commit of the program's repository in which an earlier check found the group fixed.
    pub fixed: String,
    /// Commit of the program's repository in which the group fails again.
    pub now: String,
    /// Command that finds the change, between the commit with the fix and the current one, that
    /// made the group fail again; null if `ddfuzz changes` cannot run the program in the way in
    /// which the group's failure was found (at a terminal, for example).
    pub command: Option<String>,
}

/// Failure of a group's input with the current program.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct CurrentFailure {
    /// Class of the crash with the current program, such as `segv`.
    pub class: String,
    /// Major key of the crash with the current program, which identifies the bug; its first 12 hex
    /// digits.
    pub major: String,
    /// Minor key of the crash with the current program, which identifies the call path to the bug;
    /// its first 12 hex digits.
    pub minor: String,
    /// Location, in the user's code, of the crash with the current program; null if unknown.
    pub frame: Option<String>,
}

impl CheckResult {
    /// Adds a checked group to the result and counts its verdict (fixed, same, other, flaky or
    /// cannot tell).
    pub fn add(&mut self, group: CheckedGroup) {
        match group.status {
            Status::Fixed => self.fixed += 1,
            Status::CannotTell => self.cannot_tell += 1,
            Status::Flaky => self.flaky += 1,
            Status::Other => self.other += 1,
            Status::Same => self.same += 1,
            // No check gives this status.
            Status::Unchecked => {}
        }
        self.groups.push(group);
    }
}

/// Formats the checked groups as a table of at most `width` characters (`None`: no limit), with a
/// summary line.
pub fn check_table(result: &CheckResult, width: Option<usize>) -> String {
    let mut header = vec![
        "UTILITY", "STATUS", "KIND", "GROUP", "CLASS", "WHERE", "NOW", "FILE",
    ];
    let rows = result.groups.iter().map(|group| {
        let now = match &group.now {
            Some(now) if group.status == Status::Same && now.major == group.major => {
                or_dash(&now.frame)
            }
            Some(now) => format!("{} {} {}", now.class, now.major, or_dash(&now.frame)),
            None => "-".to_owned(),
        };
        vec![
            or_dash(&group.utility),
            group.status.name().to_owned(),
            group.kind.folder().to_owned(),
            group.major.clone(),
            group.class.clone(),
            or_dash(&group.frame),
            now,
            group.file.to_string_lossy().into_owned(),
        ]
    });
    let mut rows: Vec<Vec<String>> = rows.collect();
    if result.groups.iter().all(|group| group.utility.is_none()) {
        remove_column("UTILITY", &mut header, &mut rows);
    }
    let table = match result.groups.is_empty() {
        true => String::new(),
        false => render_columns(&header, rows, width, &["KIND"]),
    };
    let undecided = result.groups.iter().filter_map(|group| {
        let (why, hint) = group.why.as_deref().zip(group.hint.as_deref())?;
        Some((why, hint, group.major.as_str()))
    });
    let undecided: String = (undecided_lines(undecided).iter())
        .map(|lines| format!("{lines}\n"))
        .collect();
    let cannot_tell = match result.cannot_tell {
        0 => String::new(),
        count => format!("; {} undecided", size::grouped(count)),
    };
    let not_run = |count: u64, why: &str| match count {
        0 => String::new(),
        count => format!("; {} not run, because {why}", size::grouped(count)),
    };
    let gone = result.not_run.saturating_sub(result.incomplete);
    let not_run = not_run(gone, "their programs no longer exist")
        + &not_run(result.incomplete, "none of their inputs is complete");
    format!(
        "{table}{undecided}{}: {} fixed, {} still failing, {} failing differently, {} flaky{cannot_tell}{not_run}",
        size::counted(result.groups.len() as u64, "group"),
        size::grouped(result.fixed),
        size::grouped(result.same),
        size::grouped(result.other),
        size::grouped(result.flaky),
    )
}
