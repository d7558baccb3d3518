//! Lesser inputs that minimizations of other groups have met.
//!
//! The search for one crash runs into others, by inputs that may be far less than what their own
//! search has come to from where it began. These stand in the logs, and are minimized themselves.

use std::collections::HashSet;
use std::time::{Duration, Instant};

use super::engine::Engine;
use crate::campaign::error::CampaignError;
use crate::campaign::ledger::lock;
use crate::minimize::log::Log;
use crate::minimize::{LeastSlip, MinimizeError, least_slips};
use crate::store::{Entry, EntryId, Kind};
use crate::triage::{Crash, Found, Triager, Verdict};

/// A lesser input is worth a search of its own where it is no more than this part of the group's
/// reproducer.
const PART: u64 = 2;

impl Engine<'_> {
    /// Minimizes what searches have met that is much less than the reproducer of its group, as long
    /// as `budget` lasts. `read`: whose logs have been read.
    pub(super) fn minimize_lesser(
        &mut self,
        read: &mut HashSet<EntryId>,
        budget: Option<Duration>,
    ) -> Result<(), CampaignError> {
        let began = Instant::now();
        while !self.stopped() && budget.is_none_or(|budget| began.elapsed() < budget) {
            let fresh = |entry: &Entry| entry.minimized.is_some() && !read.contains(&entry.id);
            let Some(entry) = self.of_utilities()?.into_iter().find(fresh) else {
                return Ok(());
            };
            read.insert(entry.id.clone());
            for slip in slips_of(&entry)? {
                let over = self.stopped() || self.gone.contains(&entry.id);
                if over || !is_lesser(&slip, &entry, &self.of_utilities()?) {
                    continue;
                }
                let filed = self.file_lesser(&entry, &slip);
                if let Some(Some(id)) = self.unless_gone(&entry.id, filed)? {
                    self.minimize(&id)?;
                }
            }
        }
        Ok(())
    }

    /// All crashes of utilities whose groups are not muted.
    fn of_utilities(&self) -> Result<Vec<Entry>, CampaignError> {
        let reader = lock(self.store).reader().clone();
        let mut all = Vec::new();
        for group in reader.groups(Kind::Crash)? {
            let major = group.record.major.short();
            if !self.muted(&major) {
                all.extend(reader.entries(Kind::Crash, &major)?);
            }
        }
        all.retain(|entry| entry.crash.of.is_some());
        Ok(all)
    }

    /// Files the input, if it still crashes so.
    fn file_lesser(
        &mut self,
        entry: &Entry,
        slip: &LeastSlip,
    ) -> Result<Option<EntryId>, CampaignError> {
        let minimizing = self.settings.minimizing.of(&entry.crash);
        let mut triager = Triager::of_target(&minimizing.target, minimizing.way)?;
        let Verdict::Crash(crash) = triager.examine(&slip.input)? else {
            return Ok(None);
        };
        let kind = Kind::of_class(&crash.class);
        if kind != Kind::Crash || crash.keys.major != slip.keys.major {
            return Ok(None);
        }
        let found = Found::Slip {
            of: entry.id.hash().to_owned(),
            test: Some(slip.test),
        };
        let crash = Crash {
            found: Some(found),
            of: entry.crash.of.clone(),
            ..*crash
        };
        Ok(Some(lock(self.store).file(kind, &crash, &slip.input)?.id))
    }
}

/// The slips of the entry's minimization; none where its log is gone.
fn slips_of(entry: &Entry) -> Result<Vec<LeastSlip>, CampaignError> {
    let path = entry.log();
    if !path.exists() {
        return Ok(Vec::new());
    }
    let log = Log::read(&path).map_err(MinimizeError::from)?;
    Ok(least_slips(&entry.original_bytes()?, &log)?)
}

/// Whether it is much less than all reproducers of its group that belong to the same utility as
/// `entry`, of which there are some.
fn is_lesser(slip: &LeastSlip, entry: &Entry, entries: &[Entry]) -> bool {
    let utility = |entry: &Entry| entry.crash.of.as_ref().map(|of| of.utility.clone());
    let same = |other: &&Entry| {
        other.crash.keys.major == slip.keys.major && utility(other) == utility(entry)
    };
    let sizes = entries.iter().filter(same).filter_map(|other| {
        let minimized = other.minimized.as_ref()?;
        Some(minimized.size_after)
    });
    let least = sizes.min();
    least.is_some_and(|least| slip.input.len() as u64 * PART <= least)
}
