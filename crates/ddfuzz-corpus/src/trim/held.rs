//! What is held while a file shrinks.

use std::sync::Arc;

use super::Wanted;
use crate::{Feature, Features};
use ddfuzz_delta::Outcome;
use ddfuzz_minimize::Answer;
use ddfuzz_minimize::log::{CoverageRecord, Numbers};

/// What is held while a file shrinks: how its runs end, and what they reach.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Held {
    /// The exit status of its runs.
    pub exit: i32,
    /// What is wanted.
    pub wanted: Wanted,
    /// What the original reaches in fresh processes besides what it may; allowed all the same.
    pub besides: Features,
}

impl Held {
    /// Nothing: any run that ends with 0 holds it.
    pub(super) fn nothing() -> Held {
        Held {
            exit: 0,
            wanted: Wanted {
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

impl From<&CoverageRecord> for Held {
    fn from(record: &CoverageRecord) -> Held {
        Held {
            exit: record.exit,
            wanted: Wanted {
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

    fn set(numbers: &[u32]) -> Features {
        features(&Numbers(numbers.to_vec()))
    }

    fn held() -> Held {
        Held {
            exit: 3,
            wanted: Wanted::worth(set(&[9]), set(&[1, 9])),
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
        assert_eq!(Held::from(&record), held());
        let json = serde_json::to_string(&record).unwrap();
        assert_eq!(
            serde_json::from_str::<CoverageRecord>(&json).unwrap(),
            record
        );
    }
}
