//! The part that the classic, guided, `watch` and study campaigns share while a call (invocation of
//! ddfuzz) runs: the output directory, progress and groups shown to the user, stopping, waiting for
//! disk space, muted groups, new groups, and the build of the program.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use crate::minimization_queue::{is_done, minimize_entry};
use crate::{
    BuildCheck, CampaignError, CampaignState, Deadline, DiskFullError, DiskWait, Minimizing,
    NewGroups, PauseGate, ProgramWatch, Progress, Screen, Until, lock,
};
use ddfuzz_exec::{ExecError, RefusalReason};
use ddfuzz_store::report::{EndedBy, GroupView};
use ddfuzz_store::{Build, EntryId, Kind, KnownGroups, Reader, Store};

/// Least time between two lines of `stats.jsonl`. While no finding is stored, also the least time
/// between two saves of the checkpoint.
const SAVE_EVERY: Duration = Duration::from_secs(2);

/// The settings of one call of ddfuzz that every kind of campaign has: time limits, conditions to
/// end, number of workers, and how groups are minimized.
pub(crate) struct SessionSettings<'a> {
    /// Deadline of the whole call of ddfuzz, including the minimizations after fuzzing
    /// (`--total-time`).
    pub(crate) deadline: &'a Deadline,
    /// The target, and the settings of the minimization of groups of crashes.
    pub(crate) minimizing: &'a Minimizing,
    /// Number of workers (threads or processes) that run the target in parallel.
    pub(crate) jobs: usize,
    /// Groups that the user has muted: their findings are stored and counted, but they neither
    /// count as new nor are minimized.
    pub(crate) known: &'a KnownGroups,
    /// Wall time that the call of ddfuzz may fuzz; `None` means no limit.
    pub(crate) time: Option<Duration>,
    /// Conditions (`--until`) that end the fuzzing when one of them is met.
    pub(crate) until: &'a [Until],
}

/// State of a running call of ddfuzz that all kinds of campaigns need: output directory, screen,
/// stop flag, times, count of new groups.
pub(crate) struct CampaignSession<'a> {
    pub(crate) store: &'a Mutex<Store>,
    pub(crate) screen: &'a mut dyn Screen,
    /// Becomes true when the user stops the call of ddfuzz, or its deadline is over.
    pub(crate) stop: &'a AtomicBool,
    pub(crate) settings: SessionSettings<'a>,
    /// Gate at which the workers pause while the disk is full.
    pub(crate) gate: &'a PauseGate,
    /// Repeats writes that failed because the disk is full, until they succeed or waiting ends.
    pub(crate) disk_wait: DiskWait<'a>,
    /// When this call of ddfuzz began to fuzz.
    pub(crate) began: Instant,
    /// When the time for fuzzing of this call of ddfuzz ends; `None` means no limit.
    pub(crate) end: Option<Instant>,
    /// The number of new groups of crashes as last counted, and the fuzzing time at which it last
    /// grew; the conditions of `--until` are compared with both.
    pub(crate) new_groups: NewGroups,
    /// When the last line was written to `stats.jsonl`; in a study, when the checkpoint was last
    /// saved.
    pub(crate) saved: Instant,
}

impl<'a> CampaignSession<'a> {
    /// Creates the state of a call of ddfuzz on the output directory `store`; the time for fuzzing
    /// begins with this function. `stop` turns true when the user stops the call; `gate` lets the
    /// workers pause while the disk is full.
    pub(crate) fn new(
        store: &'a Mutex<Store>,
        screen: &'a mut dyn Screen,
        stop: &'a AtomicBool,
        gate: &'a PauseGate,
        settings: SessionSettings<'a>,
    ) -> CampaignSession<'a> {
        let began = Instant::now();
        let end = settings.time.and_then(|time| began.checked_add(time));
        CampaignSession {
            store,
            screen,
            stop,
            settings,
            gate,
            disk_wait: DiskWait::new(stop, gate).until(end),
            began,
            end,
            new_groups: NewGroups::default(),
            saved: began,
        }
    }

    /// Checks whether the user has stopped the call of ddfuzz, or its deadline is over.
    pub(crate) fn stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    /// Checks whether the user has stopped the call of ddfuzz before its deadline.
    pub(crate) fn interrupted(&self) -> bool {
        self.stopped() && !self.settings.deadline.is_over()
    }

    /// Returns the time since the call of ddfuzz began to fuzz, without the time in which the disk
    /// was full.
    pub(crate) fn elapsed(&self) -> Duration {
        self.began.elapsed().saturating_sub(self.gate.paused())
    }

    /// Returns true if `error` says that the disk is full, and the campaign no longer waits for
    /// space, because the time for fuzzing is over or the call of ddfuzz is stopped.
    pub(crate) fn gives_up(&self, error: &CampaignError) -> bool {
        error.full_at().is_some() && (self.stopped() || self.disk_wait.is_given_up())
    }

    /// Returns `result`; but if it is the error of a full disk and the campaign [gives
    /// up](Self::gives_up) waiting for space, returns `Ok(otherwise)`, so that the call of ddfuzz
    /// ends with what is stored.
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

    /// Calls `write`, and repeats it while it fails because the disk is full
    /// ([`DiskWait::with_space`]); returns its result.
    pub(crate) fn with_space<T, E: DiskFullError>(
        &mut self,
        write: impl FnMut() -> Result<T, E>,
    ) -> Result<T, E> {
        let screen = &mut *self.screen;
        self.disk_wait
            .with_space(&mut |text| screen.note(text), write)
    }

    /// Returns true, after a pause of up to 2 seconds, if an operation with this `result` is to be
    /// repeated because the disk was full. Returns false for any other result, and also for a full
    /// disk if the user has stopped, the time limit is over, or waiting is off.
    pub(crate) fn waits_for_space<T, E: DiskFullError>(&mut self, result: &Result<T, E>) -> bool {
        let screen = &mut *self.screen;
        self.disk_wait
            .retry_after(result, &mut |text| screen.note(text))
    }

    /// Checks whether it is time to write the next line of `stats.jsonl`.
    pub(crate) fn is_save_due(&self) -> bool {
        self.saved.elapsed() >= SAVE_EVERY
    }

    /// Appends `progress` as a line to `stats.jsonl`; waits while the disk is full.
    pub(crate) fn append_stats(&mut self, progress: &Progress) -> Result<(), CampaignError> {
        let store = self.store;
        self.saved = Instant::now();
        Ok(self.with_space(|| lock(store).append_stats(progress))?)
    }

    /// Appends the last progress of the call of ddfuzz to `stats.jsonl`, and shows it to the user.
    pub(crate) fn show_last(&mut self, progress: &Progress) -> Result<(), CampaignError> {
        let stats = self.append_stats(progress);
        self.or_stopped(stats, ())?;
        self.screen.progress(progress);
        Ok(())
    }

    /// Returns the progress of the call of ddfuzz: the counts of the checkpoint, the time since the
    /// call began to fuzz, and the rate of runs per second, which is `runs` divided by the fuzzing
    /// time `fuzzed`.
    pub(crate) fn progress(
        &self,
        campaign: &CampaignState<'_>,
        runs: u64,
        fuzzed: Duration,
    ) -> Progress {
        Progress {
            time_ms: self.began.elapsed().as_millis() as u64,
            runs_per_s: Progress::rate(runs, fuzzed),
            ..campaign.checkpoint.progress()
        }
    }

    /// Returns the fraction, from 0 to 1, of the time of all workers together that was spent on
    /// minimization. `spent`: the time of minimization in this call of ddfuzz.
    pub(crate) fn minimizer_share(&self, spent: Duration) -> f64 {
        let jobs = self.settings.jobs.max(1) as f64;
        spent.as_secs_f64() / jobs / self.began.elapsed().as_secs_f64().max(0.001)
    }

    pub(crate) fn reader(&self) -> Reader {
        lock(self.store).reader().clone()
    }

    /// Checks whether the user has muted the group of crashes with this major key (12 hex digits).
    pub(crate) fn is_muted(&self, major: &str) -> bool {
        let store = lock(self.store);
        store
            .reader()
            .is_muted(Kind::Crash, major, self.settings.known)
    }

    /// Returns a function that tells whether a group of crashes, given by its major key (12 hex
    /// digits), does not count as new, although the output directory did not have it before: the
    /// user has muted it, or another group's inputs crash with this key since the program was
    /// rebuilt.
    fn known(&self) -> impl Fn(&str) -> bool {
        let build = self.build_check().recorded();
        move |major| {
            let moved = |build: &Build| build.known_as(Kind::Crash, major).is_some();
            build.as_ref().is_some_and(moved) || self.is_muted(major)
        }
    }

    /// Shows the group of an entry (stored failing input) to the user as a new group.
    pub(crate) fn show_new(&mut self, id: &EntryId) -> Result<(), CampaignError> {
        if let Some(view) = GroupView::of(&self.reader(), id)? {
            self.screen.group(&view);
        }
        Ok(())
    }

    /// Handles the `result` of the minimization of the entry `id`. If it is complete, shows the
    /// entry's group to the user as minimized and returns true; if it was interrupted, returns
    /// false.
    ///
    /// # Errors
    /// The error of the minimization, unless the user's stop may have caused it; or the error of
    /// reading the group from the output directory.
    pub(crate) fn show_minimized(
        &mut self,
        id: &EntryId,
        result: Result<(), CampaignError>,
    ) -> Result<bool, CampaignError> {
        let done = is_done(result, self.stopped())?;
        if done && let Some(view) = GroupView::of(&self.reader(), id)? {
            self.screen.minimized(&view);
        }
        Ok(done)
    }

    /// Minimizes one entry (stored failing input) on this thread with the settings `how`. Meanwhile
    /// shows the user `progress` with the time that has passed.
    pub(crate) fn minimize(
        &mut self,
        id: &EntryId,
        how: &Minimizing,
        progress: &Progress,
    ) -> Result<(), CampaignError> {
        let (began, screen) = (self.began, &mut *self.screen);
        let mut watch = || screen.progress(&progress.at(began.elapsed()));
        minimize_entry(self.store, how, self.stop, id, &mut watch)
    }

    /// Updates the number of new groups that conditions of `--until` are compared with: groups of
    /// crashes that are not muted, did not exist before the campaign, and that no completed call of
    /// ddfuzz has reported. `fuzzed` is the fuzzing time so far.
    pub(crate) fn count_new(&mut self, campaign: &CampaignState<'_>, fuzzed: Duration) {
        let checkpoint = &campaign.checkpoint;
        let is_known = self.known();
        let seen = checkpoint.seen.get(&Kind::Crash).into_iter().flatten();
        let new =
            seen.filter(|(major, _)| !checkpoint.known_before.contains(*major) && !is_known(major));
        let new = new.count() as u64;
        drop(is_known);
        self.new_groups.update(new, fuzzed);
    }

    /// Returns the first condition of `--until` that is met after the fuzzing time `fuzzed`; `None`
    /// if none is met. Checks only conditions on the number of new groups if `of_runs` is true, and
    /// only conditions on the time since the last new group if it is false.
    pub(crate) fn reached(&self, of_runs: bool, fuzzed: Duration) -> Option<Until> {
        let status = self.new_groups.status(fuzzed);
        let mut ends = self.settings.until.iter().copied();
        ends.find(|end| end.is_of_runs() == of_runs && end.is_reached(&status))
    }

    /// Builds the summary of the call of ddfuzz, with `ended_by` and `until` as given. The caller
    /// fills in `runs_of_call`, `unstored`, `unread`, `refusals` and `unnamed`, which this function
    /// sets to 0 or empty.
    pub(crate) fn summary(
        &self,
        campaign: &CampaignState<'_>,
        fuzzed: Duration,
        (ended_by, until): (EndedBy, Option<Until>),
    ) -> Result<Summary, CampaignError> {
        let checkpoint = &campaign.checkpoint;
        let is_known = self.known();
        Ok(Summary {
            runs: checkpoint.next - checkpoint.count_start,
            runs_of_campaign: checkpoint.next,
            runs_of_call: 0,
            fuzzed,
            new_groups: campaign.new_groups(|major| is_known(&major.short()))?,
            known_crashes: checkpoint.known_crashes(&is_known),
            crashes: checkpoint.total(Kind::Crash),
            hung: checkpoint.total(Kind::Hang),
            interrupted: self.interrupted(),
            ended_by,
            until,
            unstored: 0,
            unread: 0,
            refusals: Vec::new(),
            unnamed: 0,
            out_of_room: self.disk_wait.is_given_up(),
            rebuilt: self.build_check().is_rebuilt(),
        })
    }

    fn build_check(&self) -> BuildCheck<'a> {
        BuildCheck {
            store: self.store,
            minimizing: self.settings.minimizing,
            jobs: self.settings.jobs,
            stop: self.stop,
        }
    }

    /// Compares the program with the last build that the output directory records; called at the
    /// start of a call of ddfuzz. If no build is recorded, records the present one; if the program
    /// was rebuilt, checks all groups. `campaign` then forgets the stored inputs of groups that no
    /// longer fail.
    pub(crate) fn begin_build(
        &mut self,
        watch: &ProgramWatch,
        campaign: &mut CampaignState<'_>,
    ) -> Result<(), CampaignError> {
        self.build_check().begin(watch, self.screen)?;
        campaign.forget(&self.build_check().gone());
        Ok(())
    }

    /// Waits until the file of a rebuilt program is completely written, and checks all groups if
    /// the build differs from the last one. `campaign` then forgets the stored inputs of groups
    /// that no longer fail.
    ///
    /// # Errors
    /// When the program is still missing at the deadline of the call, or after two minutes, or
    /// cannot be read.
    pub(crate) fn take_build(
        &mut self,
        watch: &mut ProgramWatch,
        campaign: &mut CampaignState<'_>,
    ) -> Result<(), CampaignError> {
        if let Some(path) = watch.missing() {
            self.screen.note(&format!(
                "the program {} is missing: waiting up to two minutes for another build",
                path.display()
            ));
        }
        let is_other = watch.settle(self.stop)?;
        if let Some(path) = watch.missing().filter(|_| self.settings.deadline.is_over()) {
            let path = path.to_owned();
            return Err(ExecError::Missing { path }.into());
        }
        if is_other {
            self.build_check().recheck(watch, self.screen)?;
        }
        campaign.forget(&self.build_check().gone());
        Ok(())
    }
}

/// The result of one call (invocation of ddfuzz) of a campaign.
#[derive(Clone, Debug, PartialEq)]
pub struct Summary {
    /// Number of runs that were made and counted for the option `--runs`; several calls of ddfuzz
    /// may share this count.
    pub runs: u64,
    /// Number of runs of the campaign, in all calls of ddfuzz together.
    pub runs_of_campaign: u64,
    /// Number of runs that this call (invocation of ddfuzz) has made and counted.
    pub runs_of_call: u64,
    /// Wall time that this call of ddfuzz fuzzed, without the time in which the disk was full.
    pub fuzzed: Duration,
    /// Number of groups of crashes that are not muted, did not exist before the campaign, and that
    /// no completed call of ddfuzz has reported before.
    pub new_groups: u64,
    /// Number of runs counted for the option `--runs` that crashed in a group that is muted,
    /// existed before the campaign, or was reported by an earlier completed call of ddfuzz.
    pub known_crashes: u64,
    /// Number of runs of the campaign that crashed, in all calls of ddfuzz together.
    pub crashes: u64,
    /// Number of runs of the campaign that exceeded their time limit, in all calls of ddfuzz
    /// together.
    pub hung: u64,
    /// Whether the user stopped the call of ddfuzz before its deadline.
    pub interrupted: bool,
    /// What ended the fuzzing: the number of runs, time, `--until`, the user, or the end of the
    /// watched fuzzer.
    pub ended_by: EndedBy,
    /// The condition of `--until` that ended the call of ddfuzz; `None` if no condition ended it.
    pub until: Option<Until>,
    /// Number of findings of this call of ddfuzz that were not stored because the disk was full
    /// until the time for fuzzing was over or the call was stopped.
    pub unstored: u64,
    /// Number of watched files and directories that could not be read, so that they were not run; 0
    /// for other campaigns.
    pub unread: u64,
    /// Number of runs of this call of ddfuzz that were refused by the way `snapshot` (many runs in
    /// one process) and made in new processes instead, for each reason; empty if there are none.
    pub refusals: Vec<(RefusalReason, u64)>,
    /// Number of suspected hangs that were stored without their position in the program, because
    /// the campaign ended before they could be examined.
    pub unnamed: u64,
    /// Whether the disk was still full when the time for fuzzing was over or the call was stopped;
    /// then some counted findings may not be stored.
    pub out_of_room: bool,
    /// Whether the program was rebuilt since the campaign began.
    pub rebuilt: bool,
}

impl Summary {
    /// Returns the number of runs of this call of ddfuzz per second of its fuzzing time.
    pub fn runs_per_s(&self) -> f64 {
        Progress::rate(self.runs_of_call, self.fuzzed)
    }
}
