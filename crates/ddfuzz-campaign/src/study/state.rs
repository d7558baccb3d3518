//! The state of a study that is kept from call to call (in the campaign's checkpoint), and the
//! summary of a call.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::fuzzing::Hangs;
use super::utility::{RequestedUtilities, Utility};
use crate::campaign_state::Checkpoint;
use ddfuzz_exec::Way;
use ddfuzz_model::files::OsText;
use ddfuzz_store::{GroupTally, Kind, Reader, Replayed, UtilityRecord, is_refusal};

/// Results so far of a study (a campaign on many utilities), a part of the campaign's checkpoint.
/// Each vector has one element for each utility, in the same order.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct StudyState {
    /// Record of each utility that the study has selected, in the order in which they were first
    /// selected.
    pub(crate) utilities: Vec<UtilityRecord>,
    /// For each utility: the number of runs that were made before the present count for `--runs`
    /// began, and so are not part of this count.
    before: Vec<u64>,
    /// For each utility, the number of runs that `--runs` asks for; `None` if only a time limit bounds
    /// its runs.
    shares: Vec<Option<u64>>,
    /// Whether the present count of runs for `--runs` is incomplete; the next call of ddfuzz then
    /// continues it.
    under_way: bool,
    /// What the user asked for when the study began; `None` in states written by older versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) asked: Option<StudyRequest>,
    /// For each utility: how many of its runs were left out because its time was over. The numbers
    /// of these runs are not given to other runs.
    #[serde(default)]
    skipped: Vec<u64>,
    /// For each utility, what is known of its runs over their time limit: which are hangs and which
    /// are only slow.
    #[serde(default)]
    pub(super) hangs: Vec<Hangs>,
    /// For each utility: the numbers of the runs that exceeded their time limit, but for which a
    /// stopped call could not decide whether they hang. They count as skipped until they are
    /// repeated.
    #[serde(default)]
    pub(super) undecided: Vec<Vec<u64>>,
}

impl StudyState {
    /// Begins to count the runs of `utilities` for the option `--runs`, from 0, and adds or updates
    /// the records of these utilities. If a count of an earlier call with the same numbers of runs
    /// is unfinished, continues it instead.
    pub(super) fn begin_count(&mut self, utilities: &[Utility]) {
        let shares_before = self.shares.clone();
        for utility in utilities {
            self.enter(utility);
        }
        self.skipped.resize(self.utilities.len(), 0);
        (self.hangs).resize_with(self.utilities.len(), Hangs::default);
        (self.undecided).resize_with(self.utilities.len(), Vec::new);
        if self.under_way && self.shares == shares_before {
            return;
        }
        self.before = self.utilities.iter().map(runs).collect();
        self.under_way = true;
        for record in &mut self.utilities {
            record.done = false;
        }
    }

    /// Adds or updates the record of a utility: its package, path and number of runs, and why it is
    /// not run.
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
            // An earlier call skipped the utility; now it can be run.
            (record.label, record.note, record.done) = (None, None, false);
        }
        if let Some(skip_reason) = &utility.skip_reason {
            record.label = Some(skip_reason.label().to_owned());
            record.note = skip_reason.note();
        } else if record.label.is_none() && utility.interactive_only {
            record.label = Some("interactive-only".to_owned());
        }
    }

    /// Returns the index of the record of `utility` among the study's records; `None` if the study
    /// has no record of it.
    pub(super) fn at(&self, utility: &Utility) -> Option<usize> {
        let is_it = |record: &UtilityRecord| record.utility == utility.name;
        self.utilities.iter().position(is_it)
    }

    /// Returns the number of the next run of the utility whose record in the study has the index
    /// `at`.
    pub(super) fn next(&self, at: usize) -> u64 {
        runs(&self.utilities[at]) + self.skipped[at]
    }

    /// Counts `runs` runs of a utility as skipped, so that its next runs have higher numbers. `at`:
    /// index of the utility's record in the study.
    pub(super) fn skip(&mut self, at: usize, runs: u64) {
        self.skipped[at] += runs;
    }

    /// Removes the run with the number `run` from the undecided runs of a utility, because it was
    /// repeated. The run then counts neither as skipped nor as one of the runs that `--runs` asks for.
    /// `at`: index of the utility's record in the study.
    pub(super) fn repeat(&mut self, at: usize, run: u64) {
        self.undecided[at].retain(|one| *one != run);
        self.skipped[at] = self.skipped[at].saturating_sub(1);
        self.before[at] += 1;
    }

    /// Returns the number of the first run of a utility that `--runs` does not ask for. `u64::MAX`
    /// if only a time limits the runs. `at`: index of the utility's record in the study.
    pub(super) fn end(&self, at: usize) -> u64 {
        let first = self.before[at] + self.skipped[at];
        self.shares[at].map_or(u64::MAX, |share| first.saturating_add(share))
    }

    /// Returns true if `--runs` sets no number of runs for a utility, so that only a time limits
    /// them; otherwise false. `at`: index of the utility's record in the study.
    pub(super) fn is_timed(&self, at: usize) -> bool {
        self.shares[at].is_none()
    }

    /// Returns the number of runs of all utilities that are part of the present count for `--runs`,
    /// without the runs that were made before the count began.
    pub(super) fn runs(&self) -> u64 {
        self.all_runs() - self.before.iter().sum::<u64>()
    }

    pub(super) fn all_runs(&self) -> u64 {
        self.utilities.iter().map(runs).sum()
    }

    /// Returns how many of these utilities are still to be run: they are installed, have no reason
    /// to be skipped, and are not done.
    pub(super) fn left(&self, utilities: &[Utility]) -> usize {
        let runs = |it: &&Utility| it.skip_reason.is_none() && it.path.is_some();
        let waits = |it: &Utility| self.at(it).is_some_and(|at| !self.utilities[at].done);
        utilities.iter().filter(runs).filter(|it| waits(it)).count()
    }

    /// Records how often (`rate`) the reproducer of a group fails with the utility `utility`. If no
    /// run has failed in the group, because it was found only during a minimization, adds the group
    /// to the utility's record.
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

    /// Returns true if it is still to be measured how often the reproducer of a group fails with
    /// the utility `utility`. The group is given by its `kind` and `major` key. If the utility's
    /// record has the group, true as long as it has no rate for it. If the record lacks the group,
    /// since no run has failed in it, true only if its entry was found by chance in a minimization
    /// (`slipped`). False for an unknown utility.
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

    /// Records that the utilities have made all runs that the option `--runs` asks for.
    pub(super) fn end_count(&mut self) {
        self.under_way = false;
    }
}

/// Returns the number of runs so far of the utility with this record.
pub(super) fn runs(record: &UtilityRecord) -> u64 {
    record.tallies.iter().map(|tally| tally.runs).sum()
}

/// The result of one call (invocation of ddfuzz) of a study.
#[derive(Clone, Debug, PartialEq)]
pub struct StudySummary {
    /// Number of runs made that the option `--runs` limits; several calls of ddfuzz may share this
    /// count.
    pub runs: u64,
    /// Number of runs made by this call (invocation of ddfuzz).
    pub runs_of_call: u64,
    /// Wall time that this call of ddfuzz spent on running utilities and classifying their
    /// failures; minimization does not count.
    pub fuzzed: Duration,
    /// Number of groups of crashes that are not muted, did not exist before the study, and that no
    /// completed call of ddfuzz has reported before.
    pub new_groups: u64,
    /// Number of runs counted for the option `--runs` that crashed in a group that is muted,
    /// existed before the study, or was reported by a completed call of ddfuzz.
    pub known_crashes: u64,
    /// Whether the user stopped the call of ddfuzz; false if its deadline stopped it.
    pub interrupted: bool,
    /// Whether the deadline of the call of ddfuzz (`--total-time`) passed before all work was done.
    pub out_of_time: bool,
    /// Whether the disk was still full when the time was over, so that some findings may not be
    /// stored.
    pub out_of_room: bool,
    /// Number of findings of this call of ddfuzz that were not stored because the disk was full
    /// until the time was over or the call was stopped.
    pub unstored: u64,
    /// Ways of execution that were used for targets, each once.
    pub ways: Vec<Way>,
}

impl StudySummary {
    /// Returns the number of runs of this call of ddfuzz per second of running utilities.
    pub fn runs_per_s(&self) -> f64 {
        self.runs_of_call as f64 / self.fuzzed.as_secs_f64().max(0.001)
    }
}

/// What the user asked for when a study began. Calls that resume the study have to ask for the
/// same, except that each call of ddfuzz may choose other utilities, and its own number of runs.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct StudyRequest {
    /// File of the list of utilities, as the user named it; `None` for the bundled list.
    pub list: Option<OsText>,
    /// Name of the data set whose inputs are run; `None` if inputs are drawn at random.
    pub preset: Option<String>,
    /// Which part of the list of utilities is run, counted from 1, and into how many parts the list
    /// is divided; `None` for the whole list.
    pub shard: Option<(u32, u32)>,
    /// Greatest length of the inputs that are drawn at random, in bytes.
    pub max_len: u64,
    /// Channels by which inputs may reach a utility (such as `stdin` or `file`), in alphabetical
    /// order; empty means all channels that suit the utility.
    pub channels: Vec<String>,
    /// Whether runs that share a process also share what the program reads before its input.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub freeze_start: bool,
    /// The utilities of the last call; `None` in states written by older versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub utilities: Option<RequestedUtilities>,
}

impl StudyRequest {
    /// Reads what the user asked for when the study in an output directory began. `None` if the
    /// directory has no study, or if the state of the study cannot be read or does not contain the
    /// request.
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
    fn a_run_that_is_repeated_changes_no_count() {
        let mut state = StudyState::default();
        let mut counted = utility("boxes", None);
        counted.runs = Some(100);
        state.begin_count(&[counted]);
        state.skip(0, 3);
        state.undecided[0] = vec![1, 2];
        let counts = |state: &StudyState| (state.next(0), state.end(0), state.runs());
        let before = counts(&state);
        state.repeat(0, 1);
        let tally = ddfuzz_store::Tally {
            runs: 1,
            ..ddfuzz_store::Tally::default()
        };
        state.utilities[0].tallies.push(tally);
        assert_eq!(counts(&state), before);
        assert_eq!(state.undecided[0], [2]);
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
