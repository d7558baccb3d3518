//! The result of `ddfuzz revisit` as JSON (interface.md, "JSON results").

use serde::Serialize;

use super::{Row, StudyGroup};
use crate::report::{EndedBy, RunGroup};
use crate::{Kind, SettingsFile, Tally};
use ddfuzz_exec::Way;

/// Result of `ddfuzz revisit`: the fields of `run`'s result, and the utilities.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct StudyResult {
    /// Number of fuzzing runs, including those of an earlier call that was interrupted.
    pub runs: u64,
    /// Fuzzing runs per second in this call.
    pub runs_per_s: f64,
    /// Duration of the fuzzing in this call, in seconds.
    pub seconds: f64,
    /// Groups in the output directory's `crashes`, one element for each utility in the group.
    pub groups: Vec<RunGroup>,
    /// Groups in the output directory's `hangs`, `oom` and `flaky`.
    pub other_groups: Vec<RunGroup>,
    /// Number of crash groups that this call found first.
    pub new_groups: u64,
    /// Number of groups of hangs.
    pub hangs: u64,
    /// Number of groups of out-of-memory failures.
    pub ooms: u64,
    /// Number of groups of crashes that did not occur again.
    pub flaky: u64,
    /// Way of execution; null if there were several or none.
    pub exec: Option<Way>,
    /// All ways of execution used.
    pub ways: Vec<Way>,
    /// Whether this call continued an earlier call's study.
    pub resumed: bool,
    /// Reason why the study ended.
    pub ended_by: EndedBy,
    /// Options that a settings file added to the command line; null if none were added.
    pub settings: Option<SettingsFile>,
    /// The utilities, in the order of the list.
    pub utilities: Vec<UtilityResult>,
}

/// One utility in the JSON result of `revisit`.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct UtilityResult {
    utility: String,
    /// Package that contains the program; null if no package owns it or it is missing.
    package: Option<String>,
    version: Option<String>,
    /// How inputs reached the program, joined by commas; null if it was not run.
    channel: Option<String>,
    runs: u64,
    crashes: u64,
    hangs: u64,
    ooms: u64,
    /// Label of a special utility, such as `missing` or `setuid`; null or `None` for normal ones.
    label: Option<String>,
    note: Option<String>,
    /// Number of runs without a crash whose exit status was 126 or more.
    high_exits: u64,
    host: String,
    /// Numbers of runs by channel and kind of input.
    channels: Vec<Tally>,
    groups: u64,
    /// Size of the smallest reproducer, in bytes; crashes have priority over hangs.
    smallest: Option<u64>,
    /// Shell command that shows the failure of the smallest reproducer.
    reproduce: Option<String>,
}

impl StudyResult {
    /// Fills in the results in the directory ([`super::rows()`], [`super::study_groups`]), and
    /// sorts `ways`. The other fields say what the call did.
    pub fn with_results(mut self, rows: &[Row], groups: &[StudyGroup]) -> StudyResult {
        self.ways.sort_by_key(|way| way.name());
        self.ways.dedup();
        let is_crash = |group: &&StudyGroup| group.view.kind == Kind::Crash;
        let (crashes, others): (Vec<&StudyGroup>, Vec<&StudyGroup>) =
            groups.iter().partition(is_crash);
        let shown = |groups: Vec<&StudyGroup>| -> Vec<RunGroup> {
            groups
                .into_iter()
                .map(|group| RunGroup::from(&group.view))
                .collect()
        };
        let count = |kind| {
            let of_kind = groups.iter().filter(|group| group.view.kind == kind);
            let mut majors: Vec<_> = of_kind.map(|group| group.view.major).collect();
            majors.sort();
            majors.dedup();
            majors.len() as u64
        };
        StudyResult {
            hangs: count(Kind::Hang),
            ooms: count(Kind::Oom),
            flaky: count(Kind::Flaky),
            groups: shown(crashes),
            other_groups: shown(others),
            exec: match self.ways[..] {
                [way] => Some(way),
                _ => None,
            },
            utilities: rows.iter().map(UtilityResult::from).collect(),
            ..self
        }
    }
}

impl From<&Row> for UtilityResult {
    fn from(row: &Row) -> UtilityResult {
        let total = row.total();
        let channels = row.channels();
        let least = row.smallest();
        UtilityResult {
            utility: row.utility.clone(),
            package: row.package.clone(),
            version: row.version.clone(),
            channel: (!channels.is_empty()).then(|| channels.join(",")),
            runs: total.runs,
            crashes: total.crashes,
            hangs: total.hangs,
            ooms: total.ooms,
            label: row.label.clone(),
            note: row.note.clone(),
            high_exits: total.high_exits,
            host: row.host.clone(),
            channels: row.tallies.clone(),
            groups: row.groups.len() as u64,
            smallest: least.map(|(_, found)| found.view.size_after()),
            reproduce: least.and_then(|(group, _)| group.command()),
        }
    }
}
