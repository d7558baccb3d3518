//! The cache of test outcomes, by the text of a candidate and by its configuration (set of kept
//! units).

use std::collections::{HashMap, HashSet};

use crate::{ConfigId, Outcome};

/// Identifies the text of a tested input by 16 bytes of a hash of the text. Two texts with equal
/// ids count as equal, so the hash must not collide.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct TextId(pub [u8; 16]);

/// The rule by which the [`Cache`] of test outcomes decides which tests it answers without a run:
/// those of a known text, those of a known configuration (set of kept units), or none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "lowercase"))]
pub enum Caching {
    /// Answers every test whose text was tested before, even if another configuration (set of kept
    /// units) produced that text.
    #[default]
    Text,
    /// Answers only tests of a configuration (set of kept units) that was tested before.
    /// Publications on delta debugging count tests by this rule.
    Configuration,
    /// The cache answers no test: every candidate that the search asks for is run.
    Off,
}

/// The recorded outcome of testing a text, and which test gave it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Seen {
    /// Outcome of testing the text. If several tests of the same text disagree, FAIL is recorded,
    /// so that a text with varying outcomes never proves that a removal makes the failure
    /// disappear.
    pub outcome: Outcome,
    /// Index of the test that gave the outcome, counted from 0; `None` for tests that are not
    /// numbered, such as those of the whole and the empty input before the search.
    pub test: Option<u64>,
}

/// The answer of the cache to a test that needs no run, with the reason: the same configuration
/// (set of kept units), or the same text, was tested before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hit {
    /// The same configuration (set of kept units) was tested before, with this outcome.
    Repeated(Outcome),
    /// Another configuration (set of kept units) that has the same text was tested before, with
    /// this outcome.
    Cached(Outcome),
}

impl Hit {
    /// Returns the recorded outcome by which the cache answers the test.
    pub fn outcome(self) -> Outcome {
        match self {
            Hit::Repeated(outcome) | Hit::Cached(outcome) => outcome,
        }
    }
}

/// The cache of test outcomes: the outcome of each tested text, and the set of configurations (sets
/// of kept units) that were tested.
///
/// Every test is recorded, even with [`Caching::Off`], because a proof of minimality is read from
/// the cache.
#[derive(Clone, Debug, Default)]
pub struct Cache {
    caching: Caching,
    texts: HashMap<TextId, Seen>,
    configs: HashSet<ConfigId>,
}

impl Cache {
    /// Creates an empty cache that answers tests by the rule `caching`.
    pub fn new(caching: Caching) -> Cache {
        Cache {
            caching,
            ..Cache::default()
        }
    }

    /// Returns the rule by which this cache decides which tests it answers without a run.
    pub fn caching(&self) -> Caching {
        self.caching
    }

    /// Returns the recorded outcome for a candidate whose text is `text`, or `None` if the
    /// candidate has to be run, by the cache's [`Caching`] rule. `config` is the id of the
    /// candidate's set of kept units, `None` if the candidate replaces bytes and so is not a subset
    /// of the original's units.
    pub fn lookup(&self, config: Option<ConfigId>, text: TextId) -> Option<Hit> {
        let repeated = config.is_some_and(|config| self.configs.contains(&config));
        match (self.caching, repeated) {
            (Caching::Off, _) | (Caching::Configuration, false) => None,
            (_, true) => self.seen(text).map(|seen| Hit::Repeated(seen.outcome)),
            (Caching::Text, false) => self.seen(text).map(|seen| Hit::Cached(seen.outcome)),
        }
    }

    /// Records the outcome `seen` of a test in the cache, by the id of the candidate's text and, if
    /// given, of its configuration (set of kept units). A recorded outcome is replaced only by
    /// FAIL.
    pub fn record(&mut self, config: Option<ConfigId>, text: TextId, seen: Seen) {
        self.configs.extend(config);
        let known = self.texts.entry(text).or_insert(seen);
        if seen.outcome == Outcome::Fail && known.outcome != Outcome::Fail {
            *known = seen;
        }
    }

    /// Returns the recorded outcome of a text, whatever the [`Caching`] rule is; `None` for a text
    /// that was never tested.
    pub fn seen(&self, text: TextId) -> Option<Seen> {
        self.texts.get(&text).copied()
    }
}
