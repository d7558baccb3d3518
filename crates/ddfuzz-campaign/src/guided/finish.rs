//! What is done when the fuzzing has ended.

use std::collections::HashSet;
use std::time::{Duration, Instant};

use super::session::Session;
use crate::ledger::lock;
use crate::orders::{HangBudget, left_for_later, minimize_entry};
use crate::schedule::Met;
use crate::settings::When;
use crate::{CampaignError, Minimizing, Phase, Summary, Until};
use ddfuzz_minimize::MinimizeError;
use ddfuzz_store::report::EndedBy;
use ddfuzz_store::{EntryId, Kind};

/// Between two looks at what is examined.
const LOOK: Duration = Duration::from_millis(20);

impl Session<'_> {
    /// Minimizes what is left to be, and says what the call came to.
    pub(super) fn finish(mut self) -> Result<Summary, CampaignError> {
        if let Some(error) = self.failed.take() {
            // What was found stands; the counts are all that may be lost.
            for (suspect, group) in self.examiner.take_rest() {
                let _ = self.leave(&suspect, group);
            }
            let _ = self.books.ledger.save();
            return Err(error);
        }
        let fuzzed = self.fuzzed();
        self.examine_rest()?;
        self.write_down(false)?;
        if self.settings.when != When::Off {
            self.minimize_rest()?;
        }
        self.write_down(!self.interrupted())?;
        let progress = self.progress();
        self.screen.progress(&progress);
        let (ended_by, until) = self.ended_by();
        let checkpoint = &self.books.ledger.checkpoint;
        Ok(Summary {
            runs: checkpoint.next - checkpoint.count_start,
            runs_of_call: checkpoint.next - self.first,
            fuzzed,
            new_groups: (self.books.ledger)
                .new_groups(|major| self.books.is_muted(&major.short()))?,
            known_crashes: checkpoint.known_crashes(|major| self.books.is_muted(major)),
            crashes: checkpoint.total(Kind::Crash),
            interrupted: self.interrupted(),
            ended_by,
            until,
            unstored: self.unstored,
            unnamed: self.unnamed,
            out_of_room: self.room.is_given_up(),
            rebuilt: self.rebuild().is_on_record(),
        })
    }

    /// Waits until all is examined that hung where nothing had before; files the others as they
    /// are, and these, too, where the user does not wait.
    fn examine_rest(&mut self) -> Result<(), CampaignError> {
        while self.examiner.pending() > 0 && !self.stopped() {
            match self.examine().map_err(CampaignError::from) {
                Err(error) if self.gives_up(&error) => self.unstored += 1,
                examined => examined?,
            }
            let left = self.examiner.pending() as u64;
            self.phase = Phase::Naming { left };
            self.screen.progress(&self.progress());
            std::thread::sleep(LOOK);
        }
        for (suspect, group) in self.examiner.take_rest() {
            match self.leave(&suspect, group).map_err(CampaignError::from) {
                Err(error) if self.gives_up(&error) => self.unstored += 1,
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
        let checkpoint = &self.books.ledger.checkpoint;
        let made_all = checkpoint.goal.is_none_or(|goal| checkpoint.next >= goal);
        match self.until {
            _ if self.interrupted() => (EndedBy::Interrupted, None),
            Some(until) => (EndedBy::Until, Some(until)),
            None if self.settings.runs.is_some() && made_all => (EndedBy::Runs, None),
            None => (EndedBy::Time, None),
        }
    }

    /// Saves the checkpoint and a line of the campaign's course, when there is room. `ended`:
    /// whether the call has come to its end. The user who stops on a full disk gets what is
    /// stored.
    fn write_down(&mut self, ended: bool) -> Result<(), CampaignError> {
        if ended && self.until.is_some() {
            // What was waited for is reached: the next call begins a count of its own.
            self.books.ledger.checkpoint.goal = None;
        }
        self.tell_notes();
        let progress = self.progress();
        let Session {
            room,
            screen,
            books,
            store,
            ..
        } = self;
        let written = room.made(&mut |text| screen.note(text), || {
            books.desk.flush()?;
            match ended {
                true => books.ledger.end_call()?,
                false => books.ledger.save()?,
            }
            lock(store).append_stats(&progress)
        });
        match written.map_err(CampaignError::from) {
            Err(error) if self.gives_up(&error) => Ok(()),
            written => written,
        }
    }

    /// Minimizes groups one by one, for each may slip into further ones.
    fn minimize_rest(&mut self) -> Result<(), CampaignError> {
        let (mut taken, mut met, mut done) = (HashSet::new(), Met::default(), 0);
        let mut hangs = HangBudget::behind(self.fuzzed(), &self.settings.minimizing);
        while !self.stopped() {
            let minimizing = &self.settings.minimizing;
            let mut pending = self.books.ledger.pending(minimizing.variants, true)?;
            let wanted = |major: &str| !self.books.is_muted(major);
            pending.retain(|id| wanted(id.major()) && !taken.contains(id));
            let Some(id) = pending.first().cloned() else {
                match met.file_next(self.store, minimizing, &wanted) {
                    Ok(true) => {}
                    Ok(false) => break,
                    Err(error) if self.waits_for_room(&error) => met = Met::default(),
                    Err(error) if self.gives_up(&error) => return Ok(()),
                    Err(_) if self.stopped() => {}
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
            match self.minimize_one(&id, &minimizing) {
                Err(CampaignError::Minimize(MinimizeError::Interrupted { .. })) => {}
                Err(error) if self.waits_for_room(&error) => drop(taken.remove(&id)),
                Err(error) if self.gives_up(&error) => return Ok(()),
                Err(_) if self.stopped() => {}
                Err(error) => return Err(error),
                Ok(()) => {
                    done += 1;
                    let Session { room, screen, .. } = self;
                    room.is_written(false, &mut |text| screen.note(text));
                    self.show(&id, true)?;
                }
            }
            hangs.spend(&id, began.elapsed());
        }
        self.tell_notes();
        Ok(())
    }

    fn minimize_one(&mut self, id: &EntryId, how: &Minimizing) -> Result<(), CampaignError> {
        let progress = self.progress();
        self.screen.progress(&progress);
        let (began, screen) = (self.began, &mut self.screen);
        let mut watch = || screen.progress(&progress.later(began.elapsed()));
        minimize_entry(self.store, how, self.stop, id, &mut watch)
    }

    /// Pauses where a minimization has failed for want of room. Whether it is to go on.
    fn waits_for_room(&mut self, error: &CampaignError) -> bool {
        let Session { room, screen, .. } = self;
        room.goes_on_after(error, &mut |text| screen.note(text))
    }
}
