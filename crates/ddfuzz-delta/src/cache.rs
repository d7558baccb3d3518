//! Outcomes known already, by text and by configuration.

use std::collections::{HashMap, HashSet};

use crate::{ConfigId, Outcome};

/// Names a candidate's text: 16 bytes of a cryptographic hash of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct TextId(pub [u8; 16]);

/// Which tests are answered without a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "lowercase"))]
pub enum Caching {
    /// Every text that was tested before, whatever configuration it belongs to.
    #[default]
    Text,
    /// Only a configuration that was tested before: what the papers count.
    Configuration,
    /// None; every test that the search asks for is run.
    Off,
}

/// What is known of a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Seen {
    /// Its outcome. FAIL wins where it was tested more than once with different outcomes, so that
    /// a doubtful outcome never proves that a removal makes the failure go away.
    pub outcome: Outcome,
    /// Index of the test that gave it; `None` where a test of the axiom did.
    pub test: Option<u64>,
}

/// A test that needs no run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hit {
    /// The same configuration was tested before.
    Repeated(Outcome),
    /// Another configuration with the same text was tested before.
    Cached(Outcome),
}

impl Hit {
    /// The known outcome.
    pub fn outcome(self) -> Outcome {
        match self {
            Hit::Repeated(outcome) | Hit::Cached(outcome) => outcome,
        }
    }
}

/// The content cache: outcomes by text, and the configurations that were tested.
///
/// It records every test, whatever [`Caching`] says, because the certificate is read from it.
#[derive(Clone, Debug, Default)]
pub struct Cache {
    caching: Caching,
    texts: HashMap<TextId, Seen>,
    configs: HashSet<ConfigId>,
}

impl Cache {
    /// An empty cache that answers by this rule.
    pub fn new(caching: Caching) -> Cache {
        Cache {
            caching,
            ..Cache::default()
        }
    }

    /// The rule that it answers by.
    pub fn caching(&self) -> Caching {
        self.caching
    }

    /// The answer to a candidate with this text, if it need not be run.
    pub fn lookup(&self, config: Option<ConfigId>, text: TextId) -> Option<Hit> {
        let repeated = config.is_some_and(|config| self.configs.contains(&config));
        match (self.caching, repeated) {
            (Caching::Off, _) | (Caching::Configuration, false) => None,
            (_, true) => self.seen(text).map(|seen| Hit::Repeated(seen.outcome)),
            (Caching::Text, false) => self.seen(text).map(|seen| Hit::Cached(seen.outcome)),
        }
    }

    /// Records the outcome of a test, run or answered.
    pub fn record(&mut self, config: Option<ConfigId>, text: TextId, seen: Seen) {
        self.configs.extend(config);
        let known = self.texts.entry(text).or_insert(seen);
        if seen.outcome == Outcome::Fail && known.outcome != Outcome::Fail {
            *known = seen;
        }
    }

    /// What is known of this text, whatever the rule of answering.
    pub fn seen(&self, text: TextId) -> Option<Seen> {
        self.texts.get(&text).copied()
    }
}
