//! What runs in fresh processes have shown of the candidates for one file, so that later rounds of
//! trimming do not repeat these runs.

use std::collections::BTreeMap;

use ddfuzz_delta::Outcome;
use ddfuzz_exec::{Ended, Run};
use ddfuzz_minimize::log::{ContentHash, ShortHash};
use serde::{Deserialize, Serialize};

use super::oracle::TrimCondition;
use crate::{Feature, Features};

/// Maximum number of missing features that are recorded for a rejected candidate.
const MOST_FEATURES: usize = 16;
/// Maximum number of rejected candidates of one file that are remembered, so that they are not run
/// again in later rounds of trimming.
const MOST_CANDIDATES: usize = 4096;

/// What runs in fresh processes have shown of one file's candidates in earlier rounds of trimming:
/// why candidates were rejected, and the runs of the last content that met the condition of its
/// round. The required features may differ from round to round; a candidate is rejected without a
/// run only if the recorded reason also violates the condition of the present round.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct KnownRuns {
    /// Why each rejected candidate was rejected, by the hash of its content.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    rejected: BTreeMap<String, Rejection>,
    /// Runs of the last content that met the condition of its round of trimming; `None` if no
    /// content has met one, or a later run of the content did not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    met: Option<MetRuns>,
}

/// Why a candidate for trimming was rejected: its run ended with another exit status than required,
/// or did not reach all required features.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
enum Rejection {
    /// The run ended with this exit status, while another one is required.
    #[serde(rename = "exit")]
    Exit(i32),
    /// The run did not reach these required features; at most [`MOST_FEATURES`] of them are stored.
    #[serde(rename = "lacks")]
    Lacks(Features),
}

/// Successive runs of one content in fresh processes in a round of trimming, all of which met the
/// condition of that round (such as the features to reach).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct MetRuns {
    content: ContentHash,
    /// Number of consecutive runs of the content that met the condition.
    pub(super) count: usize,
    /// Exit status that all of the counted runs had.
    pub(super) exit: i32,
    /// Features that each of the runs reached.
    pub(super) each_time: Features,
    /// Features that at least one of the counted runs reached.
    pub(super) ever: Features,
}

impl KnownRuns {
    /// Returns true if an earlier run of `candidate` in a fresh process shows that it does not meet
    /// `condition`; false if no known run shows this.
    pub(super) fn rejects(&self, candidate: &[u8], condition: &TrimCondition) -> bool {
        match self.rejected.get(&name(candidate)) {
            Some(Rejection::Exit(exit)) => *exit != condition.exit,
            Some(Rejection::Lacks(features)) => {
                let required = &condition.wanted.required;
                features
                    .as_slice()
                    .iter()
                    .any(|one| required.contains(*one))
            }
            None => false,
        }
    }

    /// Records a `run` of `candidate` in a fresh process. `counters`: the hit counters of the run.
    /// `outcome`: the outcome of its test by `condition`.
    pub(super) fn note(
        &mut self,
        candidate: &[u8],
        condition: &TrimCondition,
        run: &Run,
        counters: Option<&[u8]>,
        outcome: Outcome,
    ) {
        let content = ContentHash::of(candidate);
        match (run.ended, counters, outcome) {
            (Ended::Exit(exit), Some(counters), Outcome::Fail) => {
                self.note_met(content, exit, Features::of_counters(counters));
                return;
            }
            (Ended::Exit(exit), _, Outcome::Pass) if exit != condition.exit => {
                self.note_rejected(content.short(), Rejection::Exit(exit));
            }
            (Ended::Exit(_), Some(counters), Outcome::Pass) => {
                let required = &condition.wanted.required;
                let lacks = required.less(&required.of_which_in(counters));
                let lacks = lacks.as_slice().iter().take(MOST_FEATURES);
                let lacks: Vec<Feature> = lacks.copied().collect();
                // A run that only reached features that are not allowed lacks none.
                if !lacks.is_empty() {
                    let lacks = Features::from_unsorted(lacks);
                    self.note_rejected(content.short(), Rejection::Lacks(lacks));
                }
            }
            _ => {}
        }
        // A content that does not meet its condition each time must be run again.
        self.met = self.met.take().filter(|met| met.content != content);
    }

    fn note_rejected(&mut self, candidate: ShortHash, why: Rejection) {
        if self.rejected.len() < MOST_CANDIDATES {
            self.rejected.insert(candidate.to_string(), why);
        }
    }

    fn note_met(&mut self, content: ContentHash, exit: i32, reached: Features) {
        match &mut self.met {
            Some(met) if met.content == content && met.exit == exit => {
                met.count += 1;
                met.each_time = met.each_time.and(&reached);
                met.ever = met.ever.or(&reached);
            }
            met => {
                *met = Some(MetRuns {
                    content,
                    count: 1,
                    exit,
                    each_time: reached.clone(),
                    ever: reached,
                });
            }
        }
    }

    /// Returns the recorded runs that met the condition of their round of trimming, if they are
    /// runs of the content `text` and there are at least `least` of them; else `None`.
    pub(super) fn met(&self, text: &[u8], least: usize) -> Option<&MetRuns> {
        let met = self.met.as_ref().filter(|met| met.count >= least)?;
        (met.content == ContentHash::of(text)).then_some(met)
    }
}

fn name(candidate: &[u8]) -> String {
    ContentHash::of(candidate).short().to_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::features::set;
    use crate::trim::RequiredFeatures;

    fn condition(required: &[u32]) -> TrimCondition {
        TrimCondition {
            wanted: RequiredFeatures::worth(set(required)),
            ..TrimCondition::default()
        }
    }

    fn exit(status: i32) -> Run {
        Run::ended(Ended::Exit(status))
    }

    #[test]
    fn a_candidate_is_rejected_again_only_for_what_it_lacked() {
        let mut known = KnownRuns::default();
        let (first, pass) = (condition(&[0, 8, 16]), Outcome::Pass);
        known.note(b"a", &first, &exit(0), Some(&[1, 0, 0]), pass);
        assert!(known.rejects(b"a", &condition(&[8])));
        assert!(known.rejects(b"a", &condition(&[16, 24])));
        assert!(!known.rejects(b"a", &condition(&[0, 24])));
        assert!(!known.rejects(b"b", &condition(&[8])));
    }

    #[test]
    fn another_exit_status_rejects_as_long_as_it_is_another() {
        let mut known = KnownRuns::default();
        known.note(b"a", &condition(&[0]), &exit(3), None, Outcome::Pass);
        assert!(known.rejects(b"a", &condition(&[8])));
        let same = TrimCondition {
            exit: 3,
            ..condition(&[8])
        };
        assert!(!known.rejects(b"a", &same));
    }

    #[test]
    fn a_failure_or_a_killed_run_rejects_nothing() {
        let mut known = KnownRuns::default();
        let (required, killed) = (condition(&[0]), Run::ended(Ended::Timeout));
        known.note(b"a", &required, &killed, None, Outcome::Unresolved);
        known.note(b"b", &required, &exit(7), None, Outcome::Unresolved);
        assert_eq!(known, KnownRuns::default());
    }

    #[test]
    fn runs_that_met_the_condition_count_until_one_does_not() {
        let (mut known, required) = (KnownRuns::default(), condition(&[0]));
        for counters in [[1, 1], [1, 0], [1, 4]] {
            known.note(b"a", &required, &exit(0), Some(&counters), Outcome::Fail);
        }
        known.note(b"b", &required, &exit(0), Some(&[0, 0]), Outcome::Pass);
        let met = known.met(b"a", 3).unwrap();
        assert_eq!((&met.each_time, &met.ever), (&set(&[0]), &set(&[0, 8, 11])));
        assert!(known.met(b"a", 4).is_none() && known.met(b"b", 1).is_none());
        let text = serde_json::to_string(&known).unwrap();
        assert_eq!(serde_json::from_str::<KnownRuns>(&text).unwrap(), known);
        known.note(b"a", &required, &exit(0), Some(&[0, 0]), Outcome::Pass);
        assert!(known.met(b"a", 1).is_none());
    }
}
