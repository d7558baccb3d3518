//! The coverage that a trimmed file has to keep.

use std::sync::Arc;

use crate::{Feature, Features};
use ddfuzz_delta::Outcome;
use ddfuzz_minimize::Answer;
use ddfuzz_minimize::log::{CoverageRecord, Numbers};

/// The features that a trimmed file has to reach, and those that it may reach.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RequiredFeatures {
    /// Features that each run has to reach. A file that does not reach them each time is skipped.
    pub must: Features,
    /// Other features that a run may reach; any where `None`. Features that are not reached each
    /// time belong here, or every candidate that happens to reach one is refused. The features
    /// of the original in a fresh process are always allowed.
    pub may: Option<Arc<Features>>,
}

impl RequiredFeatures {
    /// Exactly the features `steady`; those of `unsteady` are allowed.
    pub fn signature(steady: Features, unsteady: &Features) -> RequiredFeatures {
        let may = steady.or(unsteady);
        RequiredFeatures {
            must: steady,
            may: Some(Arc::new(may)),
        }
    }

    /// The features that the file is kept for, and no feature outside of `universe`, which has all
    /// that any run of the corpus reached.
    pub fn worth(kept_for: Features, universe: impl Into<Arc<Features>>) -> RequiredFeatures {
        RequiredFeatures {
            must: kept_for,
            may: Some(universe.into()),
        }
    }

    /// Whether a run with these features meets the requirement.
    pub fn is_met_by(&self, found: &Features) -> bool {
        let allowed = |may: &Arc<Features>| may.has_all(&found.less(&self.must));
        found.has_all(&self.must) && self.may.as_ref().is_none_or(allowed)
    }
}

/// The condition that each trimmed version of a file has to meet: how its runs end, and the
/// features that they reach.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TrimCondition {
    /// The exit status of its runs.
    pub exit: i32,
    /// The required features.
    pub wanted: RequiredFeatures,
    /// Other features of the original in fresh processes, which are allowed, too.
    pub besides: Features,
}

impl TrimCondition {
    /// The empty condition: any run that exits with 0 meets it.
    pub(super) fn nothing() -> TrimCondition {
        TrimCondition {
            exit: 0,
            wanted: RequiredFeatures {
                must: Features::default(),
                may: None,
            },
            besides: Features::default(),
        }
    }

    /// Whether a run with the right exit status and these features meets it.
    pub fn is_met_by(&self, found: &Features) -> bool {
        let must = &self.wanted.must;
        let allowed = |may: &Arc<Features>| self.besides.has_all(&found.less(must).less(may));
        found.has_all(must) && self.wanted.may.as_ref().is_none_or(allowed)
    }

    /// The outcome of a run that has ended with the right status and has these counters (modulo
    /// 256).
    pub(super) fn judge(&self, counters: &[u8]) -> Answer {
        // Most candidates that are refused are so for what is missing.
        let met = self.wanted.must.are_in(counters)
            && (self.wanted.may.is_none() || self.is_met_by(&Features::of_counters(counters)));
        Answer::of(match met {
            true => Outcome::Fail,
            false => Outcome::Pass,
        })
    }

    /// The record for the log, of a target with so many instrumented places and this build.
    pub fn record(&self, places: usize, build: Option<&str>) -> CoverageRecord {
        CoverageRecord {
            exit: self.exit,
            places: places as u64,
            build: build.map(str::to_owned),
            must: numbers(&self.wanted.must),
            may: self.wanted.may.as_deref().map(numbers),
            besides: numbers(&self.besides),
        }
    }
}

impl From<&CoverageRecord> for TrimCondition {
    fn from(record: &CoverageRecord) -> TrimCondition {
        TrimCondition {
            exit: record.exit,
            wanted: RequiredFeatures {
                must: features(&record.must),
                may: record.may.as_ref().map(|may| Arc::new(features(may))),
            },
            besides: features(&record.besides),
        }
    }
}

/// Features as a log or a record writes them.
pub(super) fn numbers(features: &Features) -> Numbers {
    Numbers(features.as_slice().iter().map(|one| one.0).collect())
}

/// Features from a log or a record.
pub(super) fn features(numbers: &Numbers) -> Features {
    Features::from_unsorted(numbers.0.iter().copied().map(Feature).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::features::set;

    #[test]
    fn the_same_signature_is_all_of_it_and_nothing_else() {
        let wanted = RequiredFeatures::signature(set(&[1, 9]), &set(&[20]));
        assert!(wanted.is_met_by(&set(&[1, 9])));
        assert!(wanted.is_met_by(&set(&[1, 9, 20])));
        assert!(!wanted.is_met_by(&set(&[1])));
        assert!(!wanted.is_met_by(&set(&[1, 9, 30])));
    }

    #[test]
    fn what_a_file_is_worth_may_come_with_anything_known() {
        let wanted = RequiredFeatures::worth(set(&[9]), set(&[1, 2, 9]));
        assert!(wanted.is_met_by(&set(&[2, 9])));
        assert!(!wanted.is_met_by(&set(&[1, 2])));
        assert!(!wanted.is_met_by(&set(&[9, 10])));
        let anything = RequiredFeatures {
            may: None,
            ..wanted
        };
        assert!(anything.is_met_by(&set(&[9, 10])));
    }

    fn held() -> TrimCondition {
        TrimCondition {
            exit: 3,
            wanted: RequiredFeatures::worth(set(&[9]), set(&[1, 9])),
            besides: set(&[40]),
        }
    }

    #[test]
    fn what_the_original_reaches_besides_is_allowed_and_not_asked_for() {
        assert!(held().is_met_by(&set(&[1, 9])));
        assert!(held().is_met_by(&set(&[9, 40])));
        assert!(!held().is_met_by(&set(&[9, 41])));
        assert!(!held().is_met_by(&set(&[1, 40])));
    }

    #[test]
    fn a_log_holds_all_of_it() {
        let record = held().record(6, Some("build"));
        assert_eq!(TrimCondition::from(&record), held());
        let json = serde_json::to_string(&record).unwrap();
        assert_eq!(
            serde_json::from_str::<CoverageRecord>(&json).unwrap(),
            record
        );
    }
}
