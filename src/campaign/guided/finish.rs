//! What is done when the fuzzing has ended.

use std::collections::HashSet;

use super::session::Session;
use crate::campaign::ledger::lock;
use crate::campaign::orders::minimize_entry;
use crate::campaign::settings::When;
use crate::campaign::{CampaignError, Summary};
use crate::minimize::MinimizeError;
use crate::store::EntryId;

impl Session<'_> {
    /// Minimizes what is left to be, and says what the call came to.
    pub(super) fn finish(mut self) -> Result<Summary, CampaignError> {
        let saved = self.books.ledger.save();
        if let Some(error) = self.failed.take() {
            return Err(error);
        }
        saved?;
        let fuzzed = self.fuzzed();
        if self.settings.when != When::Off {
            self.minimize_rest()?;
        }
        if !self.stopped() {
            self.books.ledger.end_call()?;
        }
        let progress = self.progress();
        lock(self.store).append_stats(&progress)?;
        self.screen.progress(&progress);
        let checkpoint = &self.books.ledger.checkpoint;
        Ok(Summary {
            runs: checkpoint.next - checkpoint.count_start,
            runs_of_call: checkpoint.next - self.first,
            fuzzed,
            new_groups: (self.books.ledger)
                .new_groups(|major| self.books.is_muted(&major.short()))?,
            known_crashes: checkpoint.known_crashes(|major| self.books.is_muted(major)),
            interrupted: self.stopped(),
        })
    }

    /// Minimizes groups one by one, for each may slip into further ones.
    fn minimize_rest(&mut self) -> Result<(), CampaignError> {
        let mut taken = HashSet::new();
        while !self.stopped() {
            let pending = self.books.ledger.pending(true)?;
            let fresh = |id: &EntryId| !self.books.is_muted(id.major()) && !taken.contains(id);
            let Some(id) = pending.into_iter().find(fresh) else {
                return Ok(());
            };
            taken.insert(id.clone());
            self.screen.progress(&self.progress());
            let mut progress = self.progress();
            let (began, screen) = (self.began, &mut self.screen);
            let mut watch = || {
                progress.time_ms = began.elapsed().as_millis() as u64;
                screen.progress(&progress);
            };
            match minimize_entry(self.store, self.settings, self.stop, &id, &mut watch) {
                Err(CampaignError::Minimize(MinimizeError::Interrupted { .. })) => {}
                Err(_) if self.stopped() => {}
                Err(error) => return Err(error),
                Ok(()) => self.show(&id, true)?,
            }
        }
        Ok(())
    }
}
