//! What every campaign has while it runs: the output directory, the screen, how it is stopped,
//! waiting for space on the disk, muted groups, and what is known of the program's build.

use std::collections::HashSet;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use super::campaign_state::{CampaignState, lock};
use super::disk_full::{DiskFullError, DiskWait, PauseGate};
use super::error::CampaignError;
use super::minimizing::Minimizing;
use super::rebuild::{BuildCheck, ProgramWatch};
use super::run::Summary;
use super::screen::{Progress, Screen};
use super::until::{Deadline, NewGroups, Until};
use ddfuzz_store::report::{EndedBy, GroupView};
use ddfuzz_store::{EntryId, Kind, KnownGroups, Reader, Store, StoreError};

/// The state that all campaigns share.
pub(crate) struct CampaignSession<'a> {
    pub(crate) store: &'a Mutex<Store>,
    pub(crate) screen: &'a mut dyn Screen,
    pub(crate) stop: &'a AtomicBool,
    /// The end of the whole call.
    pub(crate) deadline: &'a Deadline,
    /// How groups are minimized.
    pub(crate) minimizing: &'a Minimizing,
    /// Workers.
    pub(crate) jobs: usize,
    /// Groups to mute.
    pub(crate) known: &'a KnownGroups,
    /// Closed while the disk is full.
    pub(crate) gate: &'a PauseGate,
    pub(crate) room: DiskWait<'a>,
    pub(crate) began: Instant,
    /// Groups that are new in this count.
    pub(crate) new_groups: NewGroups,
    /// Groups that do not fail in the same way with the present build of the program.
    pub(crate) gone: HashSet<(Kind, String)>,
}

impl<'a> CampaignSession<'a> {
    pub(crate) fn stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    /// Whether the user has stopped it, and not the end of the whole time.
    pub(crate) fn interrupted(&self) -> bool {
        self.stopped() && !self.deadline.is_over()
    }

    /// How long it has run, without the time for which the disk was full.
    pub(crate) fn elapsed(&self) -> Duration {
        self.began.elapsed().saturating_sub(self.gate.held())
    }

    /// Whether `error` only says that the disk was full until the time was over, or until the
    /// user stopped.
    pub(crate) fn gives_up(&self, error: &CampaignError) -> bool {
        error.full_at().is_some() && (self.stopped() || self.room.is_given_up())
    }

    /// The result, or `otherwise` where the campaign [gives up](Self::gives_up): it ends with
    /// what is stored, without an error.
    pub(crate) fn or_stopped<T>(
        &self,
        result: Result<T, CampaignError>,
        otherwise: T,
    ) -> Result<T, CampaignError> {
        match result {
            Err(error) if self.gives_up(&error) => Ok(otherwise),
            answer => answer,
        }
    }

    /// Repeats `write` until there is space for it ([`DiskWait::made`]).
    pub(crate) fn made<T, E: DiskFullError>(
        &mut self,
        write: impl FnMut() -> Result<T, E>,
    ) -> Result<T, E> {
        let screen = &mut *self.screen;
        self.room.made(&mut |text| screen.note(text), write)
    }

    /// Pauses where something has failed for want of space. Whether it is to be done again.
    pub(crate) fn waits_for_space<T, E: DiskFullError>(&mut self, result: &Result<T, E>) -> bool {
        let screen = &mut *self.screen;
        self.room.is_again(result, &mut |text| screen.note(text))
    }

    /// Appends a line to `stats.jsonl`, when there is space.
    pub(crate) fn append_stats(&mut self, progress: &Progress) -> Result<(), CampaignError> {
        let store = self.store;
        Ok(self.made(|| lock(store).append_stats(progress))?)
    }

    pub(crate) fn reader(&self) -> Reader {
        lock(self.store).reader().clone()
    }

    /// Whether the user does not want to be told of this group of crashes.
    pub(crate) fn is_muted(&self, major: &str) -> bool {
        let store = lock(self.store);
        store.reader().is_muted(Kind::Crash, major, self.known)
    }

    /// What there is to show of an entry.
    pub(crate) fn view(&self, id: &EntryId) -> Result<Option<GroupView>, CampaignError> {
        Ok(GroupView::of(&self.reader(), id)?)
    }

    /// Groups of crashes that this count has found first and that are not muted.
    pub(crate) fn count_new(&self, ledger: &CampaignState<'_>) -> u64 {
        let checkpoint = &ledger.checkpoint;
        let seen = checkpoint.seen.get(&Kind::Crash).into_iter().flatten();
        let new = seen.filter(|(major, _)| {
            !checkpoint.known_before.contains(*major) && !self.is_muted(major)
        });
        new.count() as u64
    }

    /// The summary, without what the campaigns count differently: runs, and what is not stored.
    pub(crate) fn summary(
        &self,
        ledger: &CampaignState<'_>,
        fuzzed: Duration,
        (ended_by, until): (EndedBy, Option<Until>),
    ) -> Result<Summary, CampaignError> {
        let checkpoint = &ledger.checkpoint;
        Ok(Summary {
            runs: checkpoint.next - checkpoint.count_start,
            runs_of_call: 0,
            fuzzed,
            new_groups: ledger.new_groups(|major| self.is_muted(&major.short()))?,
            known_crashes: checkpoint.known_crashes(|major| self.is_muted(major)),
            crashes: checkpoint.total(Kind::Crash),
            interrupted: self.interrupted(),
            ended_by,
            until,
            unstored: 0,
            unnamed: 0,
            out_of_room: self.room.is_given_up(),
            rebuilt: self.rebuild().is_on_record(),
        })
    }

    /// The actions for another build of the program.
    pub(crate) fn rebuild(&self) -> BuildCheck<'a> {
        BuildCheck {
            store: self.store,
            minimizing: self.minimizing,
            jobs: self.jobs,
            stop: self.stop,
        }
    }

    /// Compares the program with the build on record, at the beginning of a call.
    pub(crate) fn begin_build(&mut self, watch: &ProgramWatch) -> Result<(), CampaignError> {
        self.rebuild().begin(watch, self.screen)?;
        self.gone = self.rebuild().not_the_same();
        Ok(())
    }

    /// Waits until the program is completely written, and checks all groups with the new build.
    pub(crate) fn take_build(&mut self, watch: &mut ProgramWatch) -> Result<(), CampaignError> {
        if watch.settle(self.stop)? {
            self.rebuild().recheck(watch, self.screen)?;
        }
        self.gone = self.rebuild().not_the_same();
        Ok(())
    }

    /// Records that a group which was fixed fails again.
    pub(crate) fn note_return(&mut self, kind: Kind, major: &str) -> Result<(), StoreError> {
        if !self.gone.is_empty() && self.gone.remove(&(kind, major.to_owned())) {
            self.rebuild().seen_again(kind, major)?;
        }
        Ok(())
    }
}
