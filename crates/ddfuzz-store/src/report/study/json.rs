//! The result of `revisit`, for scripts (interface.md, "JSON results").

use serde::Serialize;

use super::{Row, StudyGroup};
use crate::report::{EndedBy, RunGroup};
use crate::{Kind, SettingsFile, Tally};
use ddfuzz_exec::Way;

/// The result of `revisit`: that of `run`, with the utilities.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct StudyResult {
    /// Runs of this call's fuzzing.
    pub runs: u64,
    /// Runs per second of it.
    pub runs_per_s: f64,
    /// Seconds of it.
    pub seconds: f64,
    /// The groups of the output directory's `crashes`, each once for each utility that is in it.
    pub groups: Vec<RunGroup>,
    /// Those of its `hangs`, `oom` and `flaky`.
    pub other_groups: Vec<RunGroup>,
    /// How many of the groups of crashes this call found first.
    pub new_groups: u64,
    /// Groups of hangs.
    pub hangs: u64,
    /// Groups of runs over the memory limit.
    pub ooms: u64,
    /// Groups of crashes that did not come again.
    pub flaky: u64,
    /// The way of execution; null where there were several, or none.
    pub exec: Option<Way>,
    /// The ways of execution.
    pub ways: Vec<Way>,
    /// Whether it went on with an earlier call's study.
    pub resumed: bool,
    /// What ended it.
    pub ended_by: EndedBy,
    /// What a file of settings has added to the command line; null where nothing did.
    pub settings: Option<SettingsFile>,
    /// The utilities, in the order of the list.
    pub utilities: Vec<UtilityResult>,
}

/// What a call of `revisit` itself did.
#[derive(Clone, Debug, PartialEq)]
pub struct StudyCall {
    /// Runs of its fuzzing, those of an earlier call that was cut off included.
    pub runs: u64,
    /// Runs per second of this call alone.
    pub runs_per_s: f64,
    /// Seconds of it.
    pub seconds: f64,
    /// Groups of crashes that it found first.
    pub new_groups: u64,
    /// The ways of execution, in any order.
    pub ways: Vec<Way>,
    /// Whether it went on with an earlier call's study.
    pub resumed: bool,
    /// What ended it.
    pub ended_by: EndedBy,
    /// What a file of settings has added to the command line.
    pub settings: Option<SettingsFile>,
}

/// One utility in the result of `revisit`.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct UtilityResult {
    /// What the list calls it.
    pub utility: String,
    /// The package that it is of; null where no package owns it, or it is missing.
    pub package: Option<String>,
    /// The package's version.
    pub version: Option<String>,
    /// The channels, joined by commas where there are several; null where nothing was run.
    pub channel: Option<String>,
    /// Runs.
    pub runs: u64,
    /// Of them, those that crashed.
    pub crashes: u64,
    /// Those over their time limit.
    pub hangs: u64,
    /// Those over their memory limit.
    pub ooms: u64,
    /// What is special about it.
    pub label: Option<String>,
    /// More about that.
    pub note: Option<String>,
    /// Those that ended with an exit status of 126 or more, and no crash.
    pub high_exits: u64,
    /// The machine.
    pub host: String,
    /// The runs by channel and kind of input.
    pub channels: Vec<Tally>,
    /// The number of its groups, of all kinds.
    pub groups: u64,
    /// Size of its smallest reproducer, in bytes; crashes go before hangs.
    pub smallest: Option<u64>,
    /// One line for a shell that shows it.
    pub reproduce: Option<String>,
}

impl StudyResult {
    /// The result of a call, with what its directory holds ([`super::rows()`],
    /// [`super::study_groups`]).
    pub fn new(call: StudyCall, rows: &[Row], groups: &[StudyGroup]) -> StudyResult {
        let mut ways = call.ways;
        ways.sort_by_key(|way| way.name());
        ways.dedup();
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
            runs: call.runs,
            runs_per_s: call.runs_per_s,
            seconds: call.seconds,
            hangs: count(Kind::Hang),
            ooms: count(Kind::Oom),
            flaky: count(Kind::Flaky),
            groups: shown(crashes),
            other_groups: shown(others),
            new_groups: call.new_groups,
            exec: match ways[..] {
                [way] => Some(way),
                _ => None,
            },
            ways,
            resumed: call.resumed,
            ended_by: call.ended_by,
            settings: call.settings,
            utilities: rows.iter().map(UtilityResult::from).collect(),
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
