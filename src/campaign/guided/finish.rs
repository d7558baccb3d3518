//! What is done when the fuzzing has ended.

use std::collections::HashSet;
use std::time::Duration;

use super::session::Session;
use crate::campaign::ledger::lock;
use crate::campaign::orders::minimize_entry;
use crate::campaign::schedule::Met;
use crate::campaign::settings::When;
use crate::campaign::{CampaignError, Fullness, Summary, Until};
use crate::minimize::MinimizeError;
use crate::report::EndedBy;
use crate::store::{EntryId, Kind};

/// Between two looks at what is examined.
const LOOK: Duration = Duration::from_millis(20);

impl Session<'_> {
    /// Minimizes what is left to be, and says what the call came to.
    pub(super) fn finish(mut self) -> Result<Summary, CampaignError> {
        if let Some(error) = self.failed.take() {
            // What was found stands; the counts are all that may be lost.
            for suspect in self.examiner.take_rest() {
                let _ = self.file_unexamined(&suspect);
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
        self.write_down(!self.stopped())?;
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
            interrupted: self.stopped(),
            ended_by,
            until,
            rebuilt: self.rebuild().is_on_record(),
        })
    }

    /// Waits until all is examined that hung where nothing had before; files the others as they
    /// are, and these, too, where the user does not wait.
    fn examine_rest(&mut self) -> Result<(), CampaignError> {
        while self.examiner.pending() > 0 && !self.stopped() {
            self.examine()?;
            self.screen.progress(&self.progress());
            std::thread::sleep(LOOK);
        }
        for suspect in self.examiner.take_rest() {
            self.file_unexamined(&suspect)?;
        }
        Ok(())
    }

    /// What has ended this call.
    fn ended_by(&self) -> (EndedBy, Option<Until>) {
        let checkpoint = &self.books.ledger.checkpoint;
        let made_all = checkpoint.goal.is_none_or(|goal| checkpoint.next >= goal);
        match self.until {
            _ if self.stopped() => (EndedBy::Interrupted, None),
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
        match written {
            Err(error) if self.stopped() && error.full_at().is_some() => Ok(()),
            written => Ok(written?),
        }
    }

    /// Minimizes groups one by one, for each may slip into further ones.
    fn minimize_rest(&mut self) -> Result<(), CampaignError> {
        let (mut taken, mut met) = (HashSet::new(), Met::default());
        let (store, minimizing) = (self.store, &self.settings.minimizing);
        while !self.stopped() {
            let pending = self.books.ledger.pending(minimizing.variants, true)?;
            let wanted = |major: &str| !self.books.is_muted(major);
            let fresh = |id: &EntryId| wanted(id.major()) && !taken.contains(id);
            let Some(id) = pending.into_iter().find(fresh) else {
                match met.file_next(store, minimizing, &wanted) {
                    Ok(true) => {}
                    Ok(false) => return Ok(()),
                    Err(error) if self.waits_for_room(&error) => met = Met::default(),
                    Err(_) if self.stopped() => {}
                    Err(error) => return Err(error),
                }
                continue;
            };
            taken.insert(id.clone());
            self.screen.progress(&self.progress());
            let mut progress = self.progress();
            let (began, screen) = (self.began, &mut self.screen);
            let mut watch = || {
                progress.time_ms = began.elapsed().as_millis() as u64;
                screen.progress(&progress);
            };
            match minimize_entry(
                self.store,
                &self.settings.minimizing,
                self.stop,
                &id,
                &mut watch,
            ) {
                Err(CampaignError::Minimize(MinimizeError::Interrupted { .. })) => {}
                Err(error) if self.waits_for_room(&error) => drop(taken.remove(&id)),
                Err(_) if self.stopped() => {}
                Err(error) => return Err(error),
                Ok(()) => {
                    let Session { room, screen, .. } = self;
                    room.has_room(&mut |text| screen.note(text));
                    self.show(&id, true)?;
                }
            }
        }
        Ok(())
    }

    /// Pauses where a minimization has failed for want of room. Whether it is to go on.
    fn waits_for_room(&mut self, error: &CampaignError) -> bool {
        let Session { room, screen, .. } = self;
        room.goes_on_after(error, &mut |text| screen.note(text))
    }
}
