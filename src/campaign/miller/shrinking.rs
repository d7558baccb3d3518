//! What becomes of the groups of a study: options and inputs are minimized, and reproducers run
//! again.

use std::collections::HashSet;
use std::time::{Duration, Instant};

use super::engine::Engine;
use super::options::minimize_options;
use super::replay::replay;
use crate::campaign::error::CampaignError;
use crate::campaign::ledger::lock;
use crate::campaign::orders::{is_done, minimize_entry};
use crate::minimize::MinimizeError;
use crate::report::GroupView;
use crate::store::{Entry, EntryId, Replayed};

impl Engine<'_> {
    /// Minimizes the groups that runs have founded.
    pub(super) fn minimize_founders(&mut self) -> Result<(), CampaignError> {
        self.minimize_pending(false, None)
    }

    /// Minimizes what else there is: groups that were only slipped into, one by one, for each may
    /// slip into further ones, and hangs and memory blow-ups. Where the study has a time and not a
    /// number of runs, all of them together have the time of one.
    pub(super) fn minimize_others(&mut self) -> Result<(), CampaignError> {
        self.minimize_pending(true, self.budget_of_all())
    }

    /// What several minimizations may take together, where the study has a time.
    pub(super) fn budget_of_all(&self) -> Option<Duration> {
        let budget = self.settings.minimizing.budget_time;
        budget.filter(|_| self.settings.time.is_some())
    }

    fn minimize_pending(
        &mut self,
        last: bool,
        budget: Option<Duration>,
    ) -> Result<(), CampaignError> {
        let mut taken = HashSet::new();
        let began = Instant::now();
        while !self.stopped() && budget.is_none_or(|budget| began.elapsed() < budget) {
            let pending = self.ledger.pending(last)?;
            let fresh = |id: &EntryId| !self.muted(id.major()) && !taken.contains(id);
            let Some(id) = pending.into_iter().find(fresh) else {
                return Ok(());
            };
            taken.insert(id.clone());
            self.minimize(&id)?;
        }
        Ok(())
    }

    /// Minimizes one group, when there is room.
    pub(super) fn minimize(&mut self, id: &EntryId) -> Result<(), CampaignError> {
        loop {
            let result = self.minimize_once(id);
            let Engine { room, screen, .. } = self;
            if room.is_again(&result, &mut |text: &str| screen.note(text)) {
                continue;
            }
            if is_done(result, self.stopped())? {
                let reader = lock(self.store).reader().clone();
                if let Some(view) = GroupView::of(&reader, id)? {
                    self.screen.minimized(&view);
                }
                self.replay(id)?;
            }
            return Ok(());
        }
    }

    fn minimize_once(&mut self, id: &EntryId) -> Result<(), CampaignError> {
        self.shed_options(id)?;
        let (began, progress) = (self.began, self.progress());
        let screen = &mut *self.screen;
        let watch = &mut || screen.progress(&progress.later(progress.runs, began.elapsed()));
        let minimizing = &self.settings.minimizing;
        minimize_entry(self.store, minimizing, self.stop, id, watch)
    }

    /// Has the options minimized first, unless the input's turn has come already.
    fn shed_options(&mut self, id: &EntryId) -> Result<(), CampaignError> {
        let entry = self.entry(id)?;
        let Some(entry) = entry.filter(|entry| !entry.log().exists()) else {
            return Ok(());
        };
        let log = lock(self.store).options_log(id)?;
        let minimizing = &self.settings.minimizing;
        let shed = match minimize_options(minimizing, &entry, &log, self.stop) {
            // What does not come again by a plain execve keeps its options.
            Err(CampaignError::Minimize(MinimizeError::NotFailing { .. })) => None,
            answer => answer?,
        };
        if let Some(subject) = shed
            && entry.crash.of.as_deref() != Some(&subject)
        {
            lock(self.store).set_subject(id, &subject)?;
        }
        Ok(())
    }

    /// Runs the reproducer again, and notes with the utility how often it fails.
    fn replay(&mut self, id: &EntryId) -> Result<(), CampaignError> {
        let Some(entry) = self.entry(id)? else {
            return Ok(());
        };
        let Some(subject) = &entry.crash.of else {
            return Ok(());
        };
        let tries = self.settings.replays;
        let replayed = self.replayed(&entry, tries)?;
        let group = (id.kind(), id.major());
        for record in &mut self.state().utilities {
            if record.utility != subject.utility {
                continue;
            }
            for tally in &mut record.groups {
                if (tally.kind, tally.major.as_str()) == group {
                    tally.replayed = Some(replayed);
                }
            }
        }
        self.save()
    }

    fn replayed(&self, entry: &Entry, tries: u32) -> Result<Replayed, CampaignError> {
        let minimizing = self.settings.minimizing.of(&entry.crash);
        let input = entry.reproducer_bytes()?;
        Ok(replay(
            &minimizing.target,
            minimizing.way,
            &input,
            &entry.crash,
            tries,
        )?)
    }

    fn entry(&self, id: &EntryId) -> Result<Option<Entry>, CampaignError> {
        Ok(lock(self.store).reader().entry(id)?)
    }
}
