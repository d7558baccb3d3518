//! How often groups were seen, counted in memory and written now and then.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use super::counting::Counting;
use ddfuzz_store::{Kind, StoreError};
use ddfuzz_triage::Key;

/// Between two writings.
const WRITTEN_EVERY: Duration = Duration::from_secs(2);

/// The counts of one campaign.
pub(super) struct Tally {
    campaign: String,
    runs: BTreeMap<(Kind, Key), u64>,
    unwritten: BTreeSet<(Kind, Key)>,
    written: Instant,
}

impl Tally {
    /// The counts of the campaign of this id, from none.
    pub(super) fn new(campaign: &str) -> Tally {
        Tally {
            campaign: campaign.to_owned(),
            runs: BTreeMap::new(),
            unwritten: BTreeSet::new(),
            written: Instant::now(),
        }
    }

    /// The campaign's id.
    pub(super) fn campaign(&self) -> &str {
        &self.campaign
    }

    /// What an earlier process has written of a group.
    pub(super) fn set(&mut self, group: (Kind, Key), runs: u64) {
        self.runs.insert(group, runs);
    }

    /// Counts more runs.
    pub(super) fn add(&mut self, group: (Kind, Key), runs: u64) {
        let counted = self.runs.entry(group).or_default();
        *counted = counted.saturating_add(runs);
        self.unwritten.insert(group);
    }

    /// Whether it is time to write.
    pub(super) fn is_due(&self) -> bool {
        !self.unwritten.is_empty() && self.written.elapsed() >= WRITTEN_EVERY
    }

    /// Writes what was counted since the last time. What cannot be written is written next time.
    pub(super) fn write(&mut self, shelf: &mut impl Counting) -> Result<(), StoreError> {
        self.written = Instant::now();
        while let Some(group) = self.unwritten.first().copied() {
            let runs = self.runs.get(&group).copied().unwrap_or_default();
            match shelf.set_seen(group.0, group.1, &self.campaign, runs) {
                // Somebody has tidied up: it is counted when it is filed again.
                Ok(()) | Err(StoreError::NoSuch { .. }) => {}
                Err(error) => return Err(error),
            }
            self.unwritten.remove(&group);
        }
        Ok(())
    }
}
