//! The coverage that a trimmed file has to keep.

use std::sync::Arc;

use crate::{Feature, Features};
use ddfuzz_delta::Outcome;
use ddfuzz_minimize::Answer;
use ddfuzz_minimize::log::{CoverageRecord, Numbers};

/// What a file has to reach, and may.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RequiredFeatures {
    /// All of these. They have to come in each run of the file: one that does not is never trimmed.
    pub must: Features,
    /// Nothing besides these and `must`; anything where `None`. What does not count, because it
    /// does not come each time, belongs into it too, or every candidate that happens to reach it
    /// is refused. What the original reaches in a fresh process is allowed in any case: a process
    /// that has run before may have been past it. Many files share it.
    pub may: Option<Arc<Features>>,
}

impl RequiredFeatures {
    /// Exactly the same coverage, apart from `unsteady` (what may come or not).
    pub fn signature(steady: Features, unsteady: &Features) -> RequiredFeatures {
        let may = steady.or(unsteady);
        RequiredFeatures {
            must: steady,
            may: Some(Arc::new(may)),
        }
    }

    /// What the file is kept for, and nothing that no file of the corpus reaches: `universe` holds
    /// all that any of them has been seen to reach.
    pub fn worth(kept_for: Features, universe: impl Into<Arc<Features>>) -> RequiredFeatures {
        RequiredFeatures {
            must: kept_for,
            may: Some(universe.into()),
        }
    }

    /// Whether a run that has reached these is as wanted.
    pub fn is_met_by(&self, found: &Features) -> bool {
        let allowed = |may: &Arc<Features>| may.has_all(&found.less(&self.must));
        found.has_all(&self.must) && self.may.as_ref().is_none_or(allowed)
    }
}

/// What is held while a file shrinks: how its runs end, and what they reach.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TrimCondition {
    /// The exit status of its runs.
    pub exit: i32,
    /// What is wanted.
    pub wanted: RequiredFeatures,
    /// What the original reaches in fresh processes besides what it may; allowed all the same.
    pub besides: Features,
}

impl TrimCondition {
    /// Nothing: any run that ends with 0 holds it.
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

    /// Whether a run that has ended with the right status and reached these holds it.
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

    /// What a log says of it, of a target with so many instrumented places, built as `build` says.
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

/// Features as a log or a record holds them.
pub(super) fn numbers(features: &Features) -> Numbers {
    Numbers(features.as_slice().iter().map(|one| one.0).collect())
}

/// The same back.
pub(super) fn features(numbers: &Numbers) -> Features {
    Features::from_unsorted(numbers.0.iter().copied().map(Feature).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Feature;

    fn set(numbers: &[u32]) -> Features {
        Features::from_unsorted(numbers.iter().copied().map(Feature).collect())
    }

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
