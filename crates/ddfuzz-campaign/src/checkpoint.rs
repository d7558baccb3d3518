//! What a campaign remembers from call to call (`state.json`).

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use super::miller::StudyState;
use ddfuzz_model::files::Base64;
use ddfuzz_store::Kind;

/// The checkpoint of a campaign: everything that stands in no other file.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Checkpoint {
    /// The first run that is not committed.
    pub(crate) next: u64,
    /// The first run of this count.
    pub(crate) count_start: u64,
    /// The first run behind this count, while it has not been reached.
    pub(crate) goal: Option<u64>,
    /// Runs that ended in each group, by kind and major key (12 hex digits), up to `next`.
    pub(crate) seen: BTreeMap<Kind, BTreeMap<String, u64>>,
    /// The greatest length of the inputs, in bytes: with another one, a run would have another
    /// input than its number says.
    #[serde(default)]
    pub(crate) max_len: Option<u64>,
    /// What names the seeds, where there are any: with others, a run would have another input, too.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) seeds: Option<String>,
    /// What names the words of the dictionaries that are written into them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) dictionary: Option<String>,
    /// The words of the program that are: they stay when it is built anew.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) words: Vec<Base64>,
    /// Groups of crashes that were there before the campaign, or were in the result of a call of
    /// it that came to its end.
    pub(crate) known_before: BTreeSet<String>,
    /// Runs that crashed in each group before this count, as in `seen`.
    #[serde(default)]
    pub(crate) seen_before: BTreeMap<String, u64>,
    /// Whether the last call came to its end, and so told its user what is new.
    #[serde(default)]
    pub(crate) told: bool,
    /// How far it is, where it is a study of many utilities.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) study: Option<StudyState>,
}

impl Checkpoint {
    /// Begins a count of `runs`, or goes on with one that was cut off with the same goal in
    /// sight: a campaign that was killed and resumed makes just the runs of one that was not, and
    /// finds the same groups new. What an ended call has told is known to the count behind it.
    pub(crate) fn begin_count(&mut self, runs: Option<u64>) {
        let cut_off = self.goal.is_some_and(|goal| {
            runs.is_none_or(|runs| self.count_start.saturating_add(runs) == goal)
        });
        if !cut_off {
            self.count_start = self.next;
            self.goal = runs.map(|runs| self.next.saturating_add(runs));
            self.seen_before = self.seen.get(&Kind::Crash).cloned().unwrap_or_default();
        }
        self.told = false;
    }

    /// Counts a run that ended in this group.
    pub(crate) fn count(&mut self, kind: Kind, major: String) {
        self.count_runs(kind, major, 1);
    }

    /// Counts so many of them.
    pub(crate) fn count_runs(&mut self, kind: Kind, major: String, runs: u64) {
        *self.seen.entry(kind).or_default().entry(major).or_default() += runs;
    }

    /// So many of them are known to have been, at least.
    pub(crate) fn have_counted(&mut self, kind: Kind, major: String, runs: u64) {
        if runs > 0 {
            let seen = self.seen.entry(kind).or_default().entry(major).or_default();
            *seen = runs.max(*seen);
        }
    }

    /// Runs of this count that crashed in a group that `is_known`.
    pub(crate) fn known_crashes(&self, is_known: impl Fn(&str) -> bool) -> u64 {
        let crashes = self.seen.get(&Kind::Crash).into_iter().flatten();
        crashes
            .filter(|(major, _)| self.known_before.contains(*major) || is_known(major))
            .map(|(major, runs)| runs - self.seen_before.get(major).unwrap_or(&0).min(runs))
            .sum()
    }

    /// All runs that ended in a group of this kind.
    pub(crate) fn total(&self, kind: Kind) -> u64 {
        self.seen
            .get(&kind)
            .map_or(0, |groups| groups.values().sum())
    }
}
