//! What is done when the fuzzing has ended.

use std::collections::HashSet;
use std::time::{Duration, Instant};

use super::engine::GuidedEngine;
use crate::campaign_state::lock;
use crate::orders::{HangBudget, left_for_later, minimize_entry};
use crate::schedule::SlippedInputs;
use crate::settings::When;
use crate::{CampaignError, Minimizing, Phase, Summary, Until};
use ddfuzz_minimize::MinimizeError;
use ddfuzz_store::EntryId;
use ddfuzz_store::report::EndedBy;

/// Between two looks at what is examined.
const LOOK: Duration = Duration::from_millis(20);

impl GuidedEngine<'_> {
    /// Minimizes what is left to be, and says what the call came to.
    pub(super) fn finish(mut self) -> Result<Summary, CampaignError> {
        if let Some(error) = self.failed.take() {
            // What was found is stored; only counts may be lost.
            for (suspect, group) in self.examiner.take_rest() {
                let _ = self.leave(&suspect, group);
            }
            let _ = self.registry.ledger.save();
            return Err(error);
        }
        let fuzzed = self.fuzzed();
        self.examine_rest()?;
        self.write_down(false)?;
        if self.settings.when != When::Off {
            self.minimize_rest()?;
        }
        self.write_down(!self.session.interrupted())?;
        let progress = self.progress();
        self.session.screen.progress(&progress);
        let ended = self.ended_by();
        Ok(Summary {
            runs_of_call: self.registry.ledger.checkpoint.next - self.first,
            unstored: self.unstored,
            unnamed: self.unnamed,
            ..self.session.summary(&self.registry.ledger, fuzzed, ended)?
        })
    }

    /// Waits until all is examined that hung where nothing had before; files the others as they
    /// are, and these, too, where the user does not wait.
    fn examine_rest(&mut self) -> Result<(), CampaignError> {
        while self.examiner.pending() > 0 && !self.session.stopped() {
            match self.examine().map_err(CampaignError::from) {
                Err(error) if self.session.gives_up(&error) => self.unstored += 1,
                examined => examined?,
            }
            let left = self.examiner.pending() as u64;
            self.phase = Phase::Naming { left };
            self.session.screen.progress(&self.progress());
            std::thread::sleep(LOOK);
        }
        for (suspect, group) in self.examiner.take_rest() {
            match self.leave(&suspect, group).map_err(CampaignError::from) {
                Err(error) if self.session.gives_up(&error) => self.unstored += 1,
                filed => {
                    filed?;
                    self.unnamed += u64::from(group.is_none());
                }
            }
        }
        Ok(())
    }

    /// What has ended this call.
    fn ended_by(&self) -> (EndedBy, Option<Until>) {
        let checkpoint = &self.registry.ledger.checkpoint;
        let made_all = checkpoint.goal.is_none_or(|goal| checkpoint.next >= goal);
        match self.until {
            _ if self.session.interrupted() => (EndedBy::Interrupted, None),
            Some(until) => (EndedBy::Until, Some(until)),
            None if self.settings.runs.is_some() && made_all => (EndedBy::Runs, None),
            None => (EndedBy::Time, None),
        }
    }

    /// Saves the checkpoint and a line of `stats.jsonl`, when there is room. `ended`:
    /// whether the call is complete. The user who stops on a full disk gets what is
    /// stored.
    fn write_down(&mut self, ended: bool) -> Result<(), CampaignError> {
        if ended && self.until.is_some() {
            // What was waited for is reached: the next call begins a new count.
            self.registry.ledger.checkpoint.goal = None;
        }
        self.show_notes();
        let progress = self.progress();
        let store = self.session.store;
        let written = self.session.with_space(|| {
            self.registry.desk.flush()?;
            match ended {
                true => self.registry.ledger.end_call()?,
                false => self.registry.ledger.save()?,
            }
            lock(store).append_stats(&progress)
        });
        let written = written.map_err(CampaignError::from);
        self.session.or_stopped(written, ())
    }

    /// Minimizes groups one by one, for each may slip into further ones.
    fn minimize_rest(&mut self) -> Result<(), CampaignError> {
        let (mut taken, mut met, mut done) = (HashSet::new(), SlippedInputs::default(), 0);
        let mut hangs = HangBudget::after(self.fuzzed(), &self.settings.minimizing);
        while !self.session.stopped() {
            let minimizing = &self.settings.minimizing;
            let mut pending = self.registry.ledger.pending(minimizing.variants, true)?;
            let wanted = |major: &str| !self.session.is_muted(major);
            pending.retain(|id| wanted(id.major()) && !taken.contains(id));
            let Some(id) = pending.first().cloned() else {
                let filed = met.file_next(self.session.store, minimizing, &wanted);
                if self.session.waits_for_space(&filed) {
                    met = SlippedInputs::default();
                    continue;
                }
                match filed {
                    Ok(true) => {}
                    Ok(false) => break,
                    Err(error) if self.session.gives_up(&error) => return Ok(()),
                    Err(_) if self.session.stopped() => {}
                    Err(error) => return Err(error),
                }
                continue;
            };
            taken.insert(id.clone());
            let Some(minimizing) = hangs.of(&id, &self.settings.minimizing) else {
                self.tell(left_for_later(pending.len()));
                break;
            };
            self.phase = Phase::Minimizing {
                done,
                of: done + pending.len() as u64,
                each_ms: minimizing
                    .budget_time
                    .map(|budget| budget.as_millis() as u64),
            };
            let began = Instant::now();
            let result = self.minimize_one(&id, &minimizing);
            if self.session.waits_for_space(&result) {
                taken.remove(&id);
            } else {
                match result {
                    Ok(()) => {
                        done += 1;
                        self.show(&id, true)?;
                    }
                    Err(error) if self.session.gives_up(&error) => return Ok(()),
                    Err(_) if self.session.stopped() => {}
                    Err(CampaignError::Minimize(MinimizeError::Interrupted { .. })) => {}
                    Err(error) => return Err(error),
                }
            }
            hangs.spend(&id, began.elapsed());
        }
        self.show_notes();
        Ok(())
    }

    fn minimize_one(&mut self, id: &EntryId, how: &Minimizing) -> Result<(), CampaignError> {
        let progress = self.progress();
        self.session.screen.progress(&progress);
        let (began, screen) = (self.session.began, &mut self.session.screen);
        let mut watch = || screen.progress(&progress.at(began.elapsed()));
        minimize_entry(self.session.store, how, self.session.stop, id, &mut watch)
    }
}
