//! The result of `ddfuzz revisit` as JSON (docs/src/exit-codes.md).

use serde::Serialize;

use super::{Row, StudyGroup};
use crate::report::{EndedBy, RunGroup};
use crate::{Kind, SettingsFile, Tally};
use ddfuzz_exec::Way;

/// Result of `ddfuzz revisit`: the fields of `run`'s result, and the utilities.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct StudyResult {
    /// Number of fuzzing runs in the study, including those of earlier calls of `ddfuzz revisit`
    /// that were interrupted.
    pub runs: u64,
    /// Fuzzing runs per second in this call of `ddfuzz revisit`.
    pub runs_per_s: f64,
    /// Duration of the fuzzing in this call of `ddfuzz revisit`, in seconds.
    pub seconds: f64,
    /// Groups of crashes in the output directory (its folder `crashes`), one element for each
    /// utility in the group.
    pub groups: Vec<RunGroup>,
    /// Groups of hangs, out-of-memory failures and flaky crashes in the output directory.
    pub other_groups: Vec<RunGroup>,
    /// Number of crash groups that this call of `ddfuzz revisit` found first.
    pub new_groups: u64,
    /// Number of groups of hangs in the output directory.
    pub hangs: u64,
    /// Number of groups of out-of-memory failures in the output directory.
    pub ooms: u64,
    /// Number of groups, in the output directory, of crashes that did not occur again when the
    /// input was re-run.
    pub flaky: u64,
    /// Way in which the utilities were run (fork server, `execve` and so on); null if there were
    /// several or none.
    pub exec: Option<Way>,
    /// All ways in which the utilities were run (fork server, `execve` and so on), each once.
    pub ways: Vec<Way>,
    /// Whether this call of `ddfuzz revisit` continued the study of an earlier one.
    pub resumed: bool,
    /// Reason why the study ended.
    pub ended_by: EndedBy,
    /// Problems in the study, such as a full disk, as sentences.
    pub warnings: Vec<String>,
    /// Options that a settings file added to the command line; null if none were added.
    pub settings: Option<SettingsFile>,
    /// The results of the utilities, in the order of the list of utilities.
    pub utilities: Vec<UtilityResult>,
}

/// Result of one utility in the JSON result of `ddfuzz revisit`.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct UtilityResult {
    utility: String,
    /// Package that contains the utility's program; null if no package owns the program or it is
    /// missing.
    package: Option<String>,
    version: Option<String>,
    /// Channels by which inputs reached the utility (`stdin`, `file`, …), separated by commas; null
    /// if the utility was not run.
    channel: Option<String>,
    runs: u64,
    crashes: u64,
    hangs: u64,
    ooms: u64,
    /// Label that says what is special about the utility, such as `missing` or `setuid`; null for a
    /// normal one.
    label: Option<String>,
    note: Option<String>,
    /// Number of the utility's runs without a crash whose exit status was 126 or more.
    high_exits: u64,
    host: String,
    /// Numbers of the utility's runs by channel (how inputs reached the program) and kind of input.
    channels: Vec<Tally>,
    groups: u64,
    /// Size of the utility's smallest reproducer, in bytes; crashes have priority over hangs. Null
    /// if no failing input is stored.
    smallest: Option<u64>,
    /// Shell command that shows the failure of the utility's smallest reproducer; null if there is
    /// no `reproduce.sh`.
    reproduce: Option<String>,
}

impl StudyResult {
    /// Returns the result with those fields filled in that come from the output directory:
    /// utilities ([`super::rows()`]), groups ([`super::study_groups`]) and their numbers. Also
    /// sorts `ways` and removes repetitions; if exactly one way remains, sets `exec` to it.
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
