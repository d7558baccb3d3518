//! How a stage minimizes.

use std::time::Duration;

use crate::minimizing::Variants;
use ddfuzz_exec::Way;
use ddfuzz_minimize::{UnknownSearch, search_by_name};
use ddfuzz_store::KnownGroups;

/// How a [`DdminStage`](super::DdminStage) minimizes. The default takes at most 20 % of the time,
/// and 60 s for one group, by the search `full`.
#[derive(Clone, Debug)]
pub struct StageSettings {
    pub(super) share_percent: u8,
    pub(super) budget_time: Option<Duration>,
    pub(super) budget_tests: Option<u64>,
    pub(super) search: String,
    pub(super) way: Option<Way>,
    pub(super) learn_limit: bool,
    pub(super) log_inputs: bool,
    pub(super) muted: KnownGroups,
    pub(super) variants: Variants,
}

impl Default for StageSettings {
    fn default() -> StageSettings {
        StageSettings {
            share_percent: 20,
            budget_time: Some(Duration::from_secs(60)),
            budget_tests: None,
            search: "full".to_owned(),
            way: None,
            learn_limit: true,
            log_inputs: false,
            muted: KnownGroups::default(),
            variants: Variants::Plain,
        }
    }
}

impl StageSettings {
    /// Takes at most this share of the time; more than 100 is 100, and 0 minimizes nothing.
    #[must_use]
    pub fn share_percent(mut self, share: u8) -> StageSettings {
        self.share_percent = share.min(100);
        self
    }

    /// Longest time for one group, in which it is worked on; `None`: until it is done.
    #[must_use]
    pub fn budget_time(mut self, time: Option<Duration>) -> StageSettings {
        self.budget_time = time;
        self
    }

    /// Most executed tests for one group; `None`: as many as it takes.
    #[must_use]
    pub fn budget_tests(mut self, tests: Option<u64>) -> StageSettings {
        self.budget_tests = tests;
        self
    }

    /// Minimizes by the search of this name.
    ///
    /// # Errors
    /// When there is none; the error names those that there are.
    pub fn search(mut self, name: &str) -> Result<StageSettings, UnknownSearch> {
        search_by_name(name, b"x")?;
        name.clone_into(&mut self.search);
        Ok(self)
    }

    /// Runs the target in this way, and not in the fastest that works.
    #[must_use]
    pub fn way(mut self, way: Way) -> StageSettings {
        self.way = Some(way);
        self
    }

    /// Whether the limit on the time of tests is learned from the runs of the input (the default),
    /// and not that of the target throughout.
    #[must_use]
    pub fn learn_limit(mut self, learn: bool) -> StageSettings {
        self.learn_limit = learn;
        self
    }

    /// Whether candidates are written into the logs, which makes them large.
    #[must_use]
    pub fn log_inputs(mut self, log: bool) -> StageSettings {
        self.log_inputs = log;
        self
    }

    /// How many further minor keys of a group are minimized, when nothing else waits.
    #[must_use]
    pub fn variants(mut self, variants: Variants) -> StageSettings {
        self.variants = variants;
        self
    }

    /// Groups that are counted and stored, and not minimized.
    #[must_use]
    pub fn muting(mut self, muted: KnownGroups) -> StageSettings {
        self.muted = muted;
        self
    }
}
