//! When a campaign is over, and what keeps it going: room on the disk, another build.

use std::collections::BTreeMap;
use std::time::Duration;

use super::engine::Engine;
use super::worker::Chunk;
use crate::classifier::{Finding, What};
use crate::error::CampaignError;
use crate::ledger::{Ledger, Stored, lock};
use crate::rebuild::Rebuild;
use crate::room::Fullness;
use crate::until::{Course, Until, reached};
use ddfuzz_store::Kind;
use ddfuzz_store::report::EndedBy;

/// Why nothing more is committed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Over {
    /// What was waited for is reached. `end`: the first run that does not count any more, where
    /// a run has decided it.
    Until {
        /// What was reached.
        until: Until,
        /// The first run that does not count any more.
        end: Option<u64>,
    },
    /// The program is another one; fuzzing begins again with it.
    Rebuilt,
}

impl<'a> Engine<'a> {
    /// How long was fuzzed: not while the disk was full.
    pub(super) fn fuzzing(&self) -> Duration {
        let since = || self.began.elapsed().saturating_sub(self.gate.held());
        self.fuzzed.unwrap_or_else(since)
    }

    fn course(&self) -> Course {
        let elapsed = self.fuzzing().saturating_sub(self.blocked);
        let (groups, last) = self.new_seen;
        Course {
            groups,
            since_new: last.map(|last| elapsed.saturating_sub(last)),
            elapsed,
        }
    }

    /// Counts the groups that runs of this count have found new.
    fn count_new(&mut self) {
        let checkpoint = &self.ledger.checkpoint;
        let seen = checkpoint.seen.get(&Kind::Crash);
        let new = seen
            .into_iter()
            .flatten()
            .filter(|(major, _)| !checkpoint.known_before.contains(*major) && !self.muted(major));
        let new = new.count() as u64;
        if new > self.new_seen.0 {
            self.new_seen = (new, Some(self.course().elapsed));
        }
    }

    /// Whether what the runs until now have found is enough.
    pub(super) fn look_at_runs(&mut self) {
        self.count_new();
        self.end_with(None, Until::is_of_runs);
    }

    /// Whether the clock, or a look at the program, ends it.
    pub(super) fn look_at_clock(&mut self) {
        self.end_with(None, |until| !until.is_of_runs());
        if self.over.is_none() && self.watch.has_changed() {
            self.over = Some(Over::Rebuilt);
        }
    }

    fn end_with(&mut self, end: Option<u64>, which: impl Fn(&Until) -> bool) {
        let ends: Vec<Until> = self.settings.until.iter().copied().filter(which).collect();
        if self.over.is_none()
            && let Some(until) = reached(&ends, &self.course())
        {
            self.over = Some(Over::Until { until, end });
        }
    }

    /// Commits a finding, when there is room.
    pub(super) fn commit_finding(
        &mut self,
        finding: &Finding,
    ) -> Result<Option<Stored>, CampaignError> {
        let Engine {
            room,
            screen,
            ledger,
            ..
        } = self;
        let seen = |ledger: &Ledger<'_>| {
            let seen = ledger.checkpoint.seen.get(&Kind::Crash);
            seen.map_or(0, BTreeMap::len)
        };
        let groups = seen(ledger);
        let stored = room.made(&mut |text| screen.note(text), || ledger.commit(finding));
        self.unstored += u64::from(stored.is_err() && self.room.is_given_up());
        let stored = stored?;
        if seen(&self.ledger) > groups {
            self.count_new();
            self.end_with(Some(finding.run + 1), Until::is_of_runs);
        }
        self.note_return(finding)?;
        Ok(stored)
    }

    /// A group that was fixed may have come again.
    fn note_return(&mut self, finding: &Finding) -> Result<(), CampaignError> {
        if self.gone.is_empty() {
            return Ok(());
        }
        let (kind, major) = match &finding.what {
            What::Known { kind, major } => (*kind, major.short()),
            What::Crash(crash) => (Kind::of_class(&crash.class), crash.keys.major.short()),
            What::Flaky(_) => return Ok(()),
        };
        if self.gone.remove(&(kind, major.clone())) {
            self.rebuild().seen_again(kind, &major)?;
        }
        Ok(())
    }

    /// The first run that does not count once this chunk is committed.
    pub(super) fn end_of(&self, chunk: &Chunk) -> u64 {
        match self.over {
            Some(Over::Until { end: Some(end), .. }) => end,
            _ => chunk.first + chunk.runs,
        }
    }

    /// What has ended this call.
    pub(super) fn ended_by(&self) -> (EndedBy, Option<Until>) {
        let checkpoint = &self.ledger.checkpoint;
        match self.over {
            _ if self.interrupted() => (EndedBy::Interrupted, None),
            Some(Over::Until { until, .. }) => (EndedBy::Until, Some(until)),
            _ if self.settings.runs.is_some() && self.made_all() => (EndedBy::Runs, None),
            _ if self.settings.time.is_none() && checkpoint.goal.is_none() => (EndedBy::Runs, None),
            _ => (EndedBy::Time, None),
        }
    }

    /// Whether all runs of the count are made.
    fn made_all(&self) -> bool {
        let checkpoint = &self.ledger.checkpoint;
        checkpoint.goal.is_none_or(|goal| checkpoint.next >= goal)
    }

    /// Saves the checkpoint, when there is room.
    pub(super) fn save(&mut self) -> Result<(), CampaignError> {
        let Engine {
            room,
            screen,
            ledger,
            ..
        } = self;
        Ok(room.made(&mut |text| screen.note(text), || ledger.save())?)
    }

    /// Notes that the call has come to its end, when there is room. What was waited for is
    /// reached: the next call begins a count of its own.
    pub(super) fn end_call(&mut self) -> Result<(), CampaignError> {
        if matches!(self.over, Some(Over::Until { .. })) {
            self.ledger.checkpoint.goal = None;
        }
        let Engine {
            room,
            screen,
            ledger,
            ..
        } = self;
        Ok(room.made(&mut |text| screen.note(text), || ledger.end_call())?)
    }

    /// Appends a line to the campaign's course, when there is room.
    pub(super) fn append_stats(&mut self) -> Result<(), CampaignError> {
        let progress = self.progress();
        let Engine {
            room,
            screen,
            store,
            ..
        } = self;
        let append = || lock(store).append_stats(&progress);
        Ok(room.made(&mut |text| screen.note(text), append)?)
    }

    /// Pauses where a minimization has failed for want of room. Whether it is to go on.
    pub(super) fn waits_for_room<T>(&mut self, result: &Result<T, CampaignError>) -> bool {
        let Engine { room, screen, .. } = self;
        room.is_again(result, &mut |text: &str| screen.note(text))
    }

    /// Whether this is only that the disk was full until the time was over, or the user has
    /// stopped.
    fn gives_up(&self, error: &CampaignError) -> bool {
        error.full_at().is_some() && (self.stopped() || self.room.is_given_up())
    }

    /// Who is on a full disk in the end gets what is stored, and no error.
    pub(super) fn or_stopped<T>(
        &self,
        result: Result<T, CampaignError>,
        otherwise: T,
    ) -> Result<T, CampaignError> {
        match result {
            Err(error) if self.gives_up(&error) => Ok(otherwise),
            answer => answer,
        }
    }

    /// What is done about other builds of the program.
    pub(super) fn rebuild(&self) -> Rebuild<'a> {
        Rebuild {
            store: self.store,
            minimizing: &self.settings.minimizing,
            jobs: self.settings.jobs,
            stop: self.stop,
        }
    }

    /// Compares the program with the one on record.
    pub(super) fn begin_build(&mut self) -> Result<(), CampaignError> {
        self.rebuild().begin(&self.watch, self.screen)?;
        self.gone = self.rebuild().not_the_same();
        Ok(())
    }

    /// Whether the program is another one now.
    pub(super) fn is_rebuilt(&mut self) -> bool {
        if self.over.is_none() && self.watch.is_another() {
            self.over = Some(Over::Rebuilt);
        }
        matches!(self.over, Some(Over::Rebuilt))
    }

    /// Takes the program as it is now: all groups are checked, and those that are still to be
    /// minimized are begun anew.
    pub(super) fn take_build(&mut self) -> Result<(), CampaignError> {
        self.over = None;
        if self.watch.settle(self.stop)? {
            self.rebuild().recheck(&self.watch, self.screen)?;
        }
        self.gone = self.rebuild().not_the_same();
        self.queue.clear();
        self.taken.clear();
        self.more.clear();
        Ok(())
    }
}
