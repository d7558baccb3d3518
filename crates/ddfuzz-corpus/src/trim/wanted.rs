//! What a trimmed file has to reach.

use std::sync::Arc;

use crate::Features;

/// What a file has to reach, and may.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wanted {
    /// All of these. They have to come in each run of the file: one that does not is never trimmed.
    pub must: Features,
    /// Nothing besides these and `must`; anything where `None`. What does not count, because it
    /// does not come each time, belongs into it too, or every candidate that happens to reach it
    /// is refused. What the original reaches in a fresh process is allowed in any case: a process
    /// that has run before may have been past it. Many files share it.
    pub may: Option<Arc<Features>>,
}

impl Wanted {
    /// Exactly the same coverage, apart from `unsteady` (what may come or not).
    pub fn signature(steady: Features, unsteady: &Features) -> Wanted {
        let may = steady.or(unsteady);
        Wanted {
            must: steady,
            may: Some(Arc::new(may)),
        }
    }

    /// What the file is kept for, and nothing that no file of the corpus reaches: `universe` holds
    /// all that any of them has been seen to reach.
    pub fn worth(kept_for: Features, universe: impl Into<Arc<Features>>) -> Wanted {
        Wanted {
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Feature;

    fn set(numbers: &[u32]) -> Features {
        Features::from_unsorted(numbers.iter().copied().map(Feature).collect())
    }

    #[test]
    fn the_same_signature_is_all_of_it_and_nothing_else() {
        let wanted = Wanted::signature(set(&[1, 9]), &set(&[20]));
        assert!(wanted.is_met_by(&set(&[1, 9])));
        assert!(wanted.is_met_by(&set(&[1, 9, 20])));
        assert!(!wanted.is_met_by(&set(&[1])));
        assert!(!wanted.is_met_by(&set(&[1, 9, 30])));
    }

    #[test]
    fn what_a_file_is_worth_may_come_with_anything_known() {
        let wanted = Wanted::worth(set(&[9]), set(&[1, 2, 9]));
        assert!(wanted.is_met_by(&set(&[2, 9])));
        assert!(!wanted.is_met_by(&set(&[1, 2])));
        assert!(!wanted.is_met_by(&set(&[9, 10])));
        let anything = Wanted {
            may: None,
            ..wanted
        };
        assert!(anything.is_met_by(&set(&[9, 10])));
    }
}
