//! What a study remembers from call to call, within the campaign's checkpoint.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::fuzzing::Hangs;
use super::utility::Utility;
use super::worker;
use crate::campaign_state::Checkpoint;
use ddfuzz_exec::Way;
use ddfuzz_model::files::OsText;
use ddfuzz_store::{GroupTally, Kind, Reader, Replayed, UtilityRecord, is_refusal};

/// How far a study is.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct StudyState {
    /// What became of each utility, in the order of the list.
    pub(crate) utilities: Vec<UtilityRecord>,
    /// Runs of each before this count.
    before: Vec<u64>,
    /// Runs of each in this count; `None` where a time bounds them.
    shares: Vec<Option<u64>>,
    /// Whether the count is under way.
    under_way: bool,
    /// What it was asked for when it began; `None` in the states of older versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) asked: Option<StudyRequest>,
    /// Of each, the numbers of runs that were passed over: they were not made when a time was
    /// over.
    #[serde(default)]
    skipped: Vec<u64>,
    /// What is known of the hangs of each.
    #[serde(default)]
    pub(super) hangs: Vec<Hangs>,
}

impl StudyState {
    /// Begins a count of the runs of these utilities, or continues one that was cut off.
    pub(super) fn begin_count(&mut self, utilities: &[Utility]) {
        let shares_before = self.shares.clone();
        for utility in utilities {
            self.enter(utility);
        }
        self.skipped.resize(self.utilities.len(), 0);
        (self.hangs).resize_with(self.utilities.len(), Hangs::default);
        if self.under_way && self.shares == shares_before {
            return;
        }
        self.before = self.utilities.iter().map(runs).collect();
        self.under_way = true;
        for record in &mut self.utilities {
            record.done = false;
        }
    }

    /// Enters what is known of a utility on this machine.
    fn enter(&mut self, utility: &Utility) {
        let at = self.at(utility).unwrap_or_else(|| {
            self.utilities.push(UtilityRecord {
                utility: utility.name.clone(),
                place: utility.place,
                ..UtilityRecord::default()
            });
            self.before.push(0);
            self.shares.push(None);
            self.utilities.len() - 1
        });
        self.shares[at] = utility.runs;
        let record = &mut self.utilities[at];
        record.package = utility.package.clone();
        record.version = utility.version.clone();
        record.path = utility.path.as_ref().map(OsText::from);
        if utility.skip_reason.is_none() && record.label.as_deref().is_some_and(is_refusal) {
            // It was refused by an earlier call, and is looked at again.
            (record.label, record.note, record.done) = (None, None, false);
        }
        if let Some(skip_reason) = &utility.skip_reason {
            record.label = Some(skip_reason.label().to_owned());
            record.note = skip_reason.note();
        } else if record.label.is_none() && utility.interactive_only {
            record.label = Some("interactive-only".to_owned());
        }
    }

    /// The position of the record of a utility.
    pub(super) fn at(&self, utility: &Utility) -> Option<usize> {
        let is_it = |record: &UtilityRecord| record.utility == utility.name;
        self.utilities.iter().position(is_it)
    }

    /// The next run of a utility.
    pub(super) fn next(&self, at: usize) -> u64 {
        runs(&self.utilities[at]) + self.skipped[at]
    }

    /// Goes on after so many runs that are not made.
    pub(super) fn skip(&mut self, at: usize, runs: u64) {
        self.skipped[at] += runs;
    }

    /// The first run that is not to be made in this count.
    pub(super) fn end(&self, at: usize) -> u64 {
        let first = self.before[at] + self.skipped[at];
        self.shares[at].map_or(u64::MAX, |share| first.saturating_add(share))
    }

    /// Whether a time bounds the runs of a utility, and nothing else.
    pub(super) fn is_timed(&self, at: usize) -> bool {
        self.shares[at].is_none()
    }

    /// Runs of this count.
    pub(super) fn runs(&self) -> u64 {
        let all: u64 = self.utilities.iter().map(runs).sum();
        all - self.before.iter().sum::<u64>()
    }

    /// How many of these utilities are still to be run in this count.
    pub(super) fn left(&self, utilities: &[Utility]) -> usize {
        let runs = |it: &&Utility| it.skip_reason.is_none() && it.path.is_some();
        let waits = |it: &Utility| self.at(it).is_some_and(|at| !self.utilities[at].done);
        utilities.iter().filter(runs).filter(|it| waits(it)).count()
    }

    /// Notes how often a group of a utility fails again. One that no run has ended in was met while
    /// another one was minimized.
    pub(super) fn note_replayed(&mut self, utility: &str, kind: Kind, major: &str, rate: Replayed) {
        let Some(record) = self.utilities.iter_mut().find(|it| it.utility == utility) else {
            return;
        };
        let same = |held: &&mut GroupTally| held.kind == kind && held.major == major;
        match record.groups.iter_mut().find(same) {
            Some(held) => held.replayed = Some(rate),
            None => record.groups.push(GroupTally {
                kind,
                major: major.to_owned(),
                runs: 0,
                replayed: Some(rate),
            }),
        }
    }

    /// Whether that is not recorded yet for a group of this study. What has `slipped` into a
    /// minimization does not say of which study it is.
    pub(super) fn lacks_rate(&self, utility: &str, kind: Kind, major: &str, slipped: bool) -> bool {
        let Some(record) = self.utilities.iter().find(|it| it.utility == utility) else {
            return false;
        };
        let same = |held: &&GroupTally| held.kind == kind && held.major == major;
        match record.groups.iter().find(same) {
            Some(held) => held.replayed.is_none(),
            None => slipped,
        }
    }

    /// Notes that the count is complete.
    pub(super) fn end_count(&mut self) {
        self.under_way = false;
    }
}

/// Runs of a utility.
pub(super) fn runs(record: &UtilityRecord) -> u64 {
    worker::runs(&record.tallies)
}

/// The result of one call of a study.
#[derive(Clone, Debug, PartialEq)]
pub struct StudySummary {
    /// Runs of this count.
    pub runs: u64,
    /// Of them, those made by this call.
    pub runs_of_call: u64,
    /// How long this call ran utilities.
    pub fuzzed: Duration,
    /// Groups of crashes that this count found first.
    pub new_groups: u64,
    /// Runs of this count that crashed in a group known before.
    pub known_crashes: u64,
    /// Whether the user stopped it.
    pub interrupted: bool,
    /// Whether the whole time of the call was over before all was done.
    pub out_of_time: bool,
    /// Whether the disk was full until the time was over: some of what was found may not be stored.
    pub out_of_room: bool,
    /// The ways of execution, each once.
    pub ways: Vec<Way>,
}

impl StudySummary {
    /// Runs per second of this call.
    pub fn runs_per_s(&self) -> f64 {
        self.runs_of_call as f64 / self.fuzzed.as_secs_f64().max(0.001)
    }
}

/// What a study was asked for when it began. Which utilities, and how many runs, is up to each
/// call.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct StudyRequest {
    /// The file of the list, as it was named; `None` for the one that comes along.
    pub list: Option<OsText>,
    /// The data set whose inputs are run.
    pub preset: Option<String>,
    /// Which part of how many of the list, from 1.
    pub shard: Option<(u32, u32)>,
    /// The greatest length of inputs that are drawn, in bytes.
    pub max_len: u64,
    /// By which channels alone, in alphabetical order; by all that suit where empty.
    pub channels: Vec<String>,
}

impl StudyRequest {
    /// What the study of a directory was asked for so far; `None` where there is none, or none that
    /// says. What cannot be read is no error here: whoever continues the study meets it.
    pub fn so_far(reader: &Reader) -> Option<StudyRequest> {
        reader.load_state::<Checkpoint>().ok()??.study?.asked
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::study::SkipReason;

    fn utility(name: &str, skip_reason: Option<SkipReason>) -> Utility {
        Utility {
            name: name.to_owned(),
            place: 0,
            package: None,
            version: None,
            path: skip_reason.is_none().then(|| "/bin/true".into()),
            skip_reason,
            interactive_only: false,
            invocations: Vec::new(),
            runs: None,
        }
    }

    #[test]
    fn the_time_is_shared_by_what_is_run_in_this_call() {
        let [boxes, nvi] = ["boxes", "nvi"].map(|name| utility(name, None));
        let missing = utility("nowhere", Some(SkipReason::Missing));
        let earlier = utility("earlier", None);
        let mut state = StudyState::default();
        state.begin_count(&[earlier]);
        let asked = [boxes, nvi, missing];
        state.begin_count(&asked);
        assert_eq!(state.left(&asked), 2);
        let at = state.at(&asked[0]).unwrap();
        state.utilities[at].done = true;
        assert_eq!(state.left(&asked), 1);
    }

    #[test]
    fn a_count_goes_on_after_runs_that_were_passed_over() {
        let mut counted = utility("boxes", None);
        let mut state = StudyState::default();
        state.begin_count(std::slice::from_ref(&counted));
        state.skip(0, 40);
        state.end_count();
        counted.runs = Some(100);
        state.begin_count(&[counted]);
        assert_eq!((state.next(0), state.end(0), state.runs()), (40, 140, 0));
    }

    #[test]
    fn a_rate_of_what_no_run_ended_in_is_kept() {
        let mut state = StudyState::default();
        state.begin_count(&[utility("boxes", None)]);
        let rate = Replayed {
            hits: 5,
            tries: 5,
            fixed_hits: None,
        };
        assert!(state.lacks_rate("boxes", Kind::Crash, "ab", true));
        assert!(!state.lacks_rate("boxes", Kind::Crash, "ab", false));
        state.note_replayed("boxes", Kind::Crash, "ab", rate);
        assert!(!state.lacks_rate("boxes", Kind::Crash, "ab", true));
        let held = &state.utilities[0].groups[0];
        assert_eq!((held.runs, held.replayed), (0, Some(rate)));
    }
}
