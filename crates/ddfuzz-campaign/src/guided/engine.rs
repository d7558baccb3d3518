//! [`GuidedEngine`], the main process of a guided campaign: it owns the output directory, counts
//! runs, shows the progress, decides when fuzzing ends, and then minimizes the remaining groups.

use std::collections::{BTreeSet, HashSet};
use std::net::SocketAddr;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use crossbeam::channel::{self, Receiver, Sender};
use libafl::Error;

use super::{
    broker_link::{self, BrokerLink},
    hang_examiner::HangExaminer,
    messages::{Heartbeat, HeartbeatAnswer, JudgedHang},
    process::shared_flag,
    reached_code::ReachedCode,
    server::{Peer, Role, WorkerServer},
    system,
};
use crate::campaign_state::CampaignState;
use crate::lock;
use crate::minimization_order::SlippedInputs;
use crate::minimization_queue::{RestBudget, is_slipped, minimize_entry};
use crate::session::CampaignSession;
use crate::{
    CampaignError, GroupRegistry, Minimizing, PauseGate, Phase, ProgramWatch, Progress, Screen,
    Settings, SharedStore, Summary, Until, When, reached,
};
use ddfuzz_exec::AbandonWhen;
use ddfuzz_minimize::MinimizeError;
use ddfuzz_store::report::{EndedBy, GroupView};
use ddfuzz_store::{EntryId, Kind, Store, StoreError};

/// Longest time that the main process waits for requests of workers before it serves LibAFL's
/// broker again.
const POLL: Duration = Duration::from_millis(5);
/// Name of a file that each output directory has; if it is missing, the directory was removed or
/// renamed.
const RECORD_FILE: &str = "ddfuzz.json";
/// Time between two updates of the campaign's progress on the user's screen.
const DRAW_EVERY: Duration = Duration::from_millis(200);
/// Longest time that the main process waits, at the start, for workers that have not connected.
const START_TIMEOUT: Duration = Duration::from_secs(30);
/// Longest time that workers may take to end after fuzzing; then LibAFL's launcher kills them.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(5);
/// A worker is granted the remaining runs of the campaign, divided by this number and by the number
/// of workers, so that all workers end at about the same time.
const GRANT_PARTS: u64 = 4;
/// Smallest and largest number of runs that the main process grants a worker at once.
const GRANT_RANGE: (u64, u64) = (64, 1 << 20);

/// State of the main process of a guided campaign during one call of ddfuzz. The main process
/// answers the workers' requests, and ends the call.
pub(super) struct GuidedEngine<'a> {
    pub(super) session: CampaignSession<'a>,
    pub(super) settings: &'a Settings,
    pub(super) state: CampaignState<'a>,
    pub(super) groups: Groups<'a>,
    /// When the worker processes that now run were started.
    launched: Instant,
    /// Phase that the user's screen shows: fuzzing, examining suspected hangs, or minimizing.
    pub(super) phase: Phase,
    /// When fuzzing ended; `None` while workers still fuzz.
    pub(super) ended: Option<Instant>,
    /// Time of this call of ddfuzz in which no worker fuzzed, because the program was rebuilt and
    /// the groups were checked with the new build.
    pub(super) paused: Duration,
    /// Number of the first run of this call of ddfuzz, counted from the start of the campaign.
    pub(super) first: u64,
    /// When the progress on the user's screen was last updated.
    drawn: Instant,
    /// Number of runs that were granted to workers and that the workers have not reported yet.
    pub(super) outstanding: u64,
    /// Number of inputs in the corpus of the output directory.
    pub(super) corpus: u64,
    pub(super) workers: Workers,
    /// Time that all workers together have spent on minimization in this call of ddfuzz.
    pub(super) minimized: Duration,
    /// The heartbeat (status of a worker) with the most covered edges of all heartbeats with the
    /// present build.
    pub(super) best: Heartbeat,
    /// Number of known groups when new groups were last counted for the conditions of `--until`.
    pub(super) counted: usize,
    /// The condition of `--until` that has ended the fuzzing; `None` if none is met yet.
    pub(super) until: Option<Until>,
    /// Detects that the target's program was rebuilt.
    pub(super) watch: ProgramWatch,
    /// Flag in memory that the main process shares with the worker processes: true once fuzzing has
    /// ended. The workers then abandon their runs.
    over: &'static AtomicBool,
    /// Whether the program was rebuilt, so that all worker processes must be started again.
    pub(super) rebuilt: bool,
    /// Examines suspected hangs (runs that took too long) on a separate thread.
    pub(super) examiner: HangExaminer,
    /// All verdicts about suspected hangs with the present build of the program, oldest first.
    pub(super) judged: Vec<JudgedHang>,
    /// Number of crashes and suspected hangs that were never stored, because the disk was full and
    /// stayed full until the time of the campaign was over.
    pub(super) unstored: u64,
    /// Number of suspected hangs of no known group that were stored without their position in the
    /// program, because the campaign ended before they were examined.
    pub(super) unnamed: u64,
    /// Blocks of an unmodified (not instrumented) program that runs have reached.
    pub(super) code: ReachedCode,
    /// The error that ended the campaign early; `None` if there was no error.
    pub(super) failed: Option<CampaignError>,
    /// Receives, on the main thread, the notes for the user that all threads send.
    notes: Receiver<String>,
    /// Sends notes for the user to the main thread; other threads have clones of this sender.
    pub(super) note: Sender<String>,
}

impl<'a> GuidedEngine<'a> {
    pub(super) fn new(
        store: &'a Mutex<Store>,
        settings: &'a Settings,
        screen: &'a mut dyn Screen,
        stop: &'a AtomicBool,
        (state, groups): (CampaignState<'a>, Groups<'a>),
        gate: &'a PauseGate,
    ) -> Result<GuidedEngine<'a>, CampaignError> {
        let (note, notes) = channel::unbounded();
        let now = Instant::now();
        let first = state.checkpoint.next;
        let session = CampaignSession::new(store, screen, stop, gate, settings.session());
        Ok(GuidedEngine {
            session,
            settings,
            state,
            groups,
            launched: now,
            phase: Phase::Fuzzing,
            ended: None,
            paused: Duration::ZERO,
            first,
            drawn: now,
            counted: 0,
            until: None,
            watch: ProgramWatch::of(&settings.minimizing.target)?,
            over: shared_flag().map_err(system("sharing memory"))?,
            rebuilt: false,
            examiner: HangExaminer::new(&settings.minimizing.target, settings.minimizing.way),
            judged: Vec::new(),
            unstored: 0,
            unnamed: 0,
            outstanding: 0,
            corpus: 0,
            workers: Workers::default(),
            minimized: Duration::ZERO,
            best: Heartbeat::default(),
            code: ReachedCode::default(),
            failed: None,
            notes,
            note,
        })
    }

    /// Answers the requests of `workers` worker processes until all have ended, or their time to
    /// end is over. Calls `network`, which serves LibAFL's broker, after each round of requests. An
    /// error ends the fuzzing and is recorded in `failed`.
    pub(super) fn serve(
        &mut self,
        server: &mut WorkerServer,
        workers: usize,
        mut network: impl FnMut() -> Result<(), Error>,
    ) {
        self.launched = Instant::now();
        self.workers = Workers::default();
        self.corpus = lock(self.session.store)
            .reader()
            .corpus()
            .map_or(0, |all| all.len() as u64);
        loop {
            if let Err(source) = server.serve(POLL, self) {
                let what = "listening for workers".to_owned();
                self.fail(CampaignError::System { what, source });
            }
            if let Err(error) = network() {
                self.fail(CampaignError::Network(error.to_string()));
            }
            match self.tick(server) {
                // The time is over while the disk is full.
                Err(error) if self.session.gives_up(&error) => {}
                Err(error) => self.fail(error),
                Ok(()) => {}
            }
            let coming =
                self.workers.begun.len() < workers && self.launched.elapsed() < START_TIMEOUT;
            let lives = coming || !server.peers.is_empty();
            if self.is_over() {
                let ended = *self.ended.get_or_insert_with(Instant::now);
                self.over.store(true, Ordering::Relaxed);
                if !lives {
                    return;
                }
                if ended.elapsed() > SHUTDOWN_TIMEOUT {
                    return self.give_up(server);
                }
            } else if !lives {
                let why = "all of them have died".to_owned();
                self.fail(CampaignError::Worker(why));
            }
        }
    }

    /// Returns when workers started next abandon their runs: at the target's own conditions, when
    /// fuzzing has ended (the flag `over`, which this call updates), or at its time limit.
    pub(super) fn begin_fuzzing(&self) -> AbandonWhen {
        self.over.store(self.is_over(), Ordering::Relaxed);
        let over = self.over;
        let left = (self.settings.time).map(|time| time.saturating_sub(self.clock()));
        let stopped = self.settings.minimizing.target.abandon_when.clone();
        stopped
            .or(|| over.load(Ordering::Relaxed))
            .or_at(left.and_then(|left| Instant::now().checked_add(left)))
    }

    /// Closes the connections to all workers that have not ended in time after fuzzing, and tells
    /// the user; LibAFL's launcher kills these workers.
    fn give_up(&mut self, server: &mut WorkerServer) {
        let text = "a worker did not stop and was killed; its last runs are not counted";
        self.session.screen.note(text);
        for peer in server.peers.drain(..) {
            self.lost(peer);
        }
    }

    /// Links this campaign's LibAFL broker, which listens at `port`, to the broker of another host
    /// at `other`. On failure, records the error, which ends the campaign, and returns `None`.
    pub(super) fn join(&mut self, other: SocketAddr, port: u16) -> Option<BrokerLink> {
        match broker_link::join(other, port, self.note.clone()) {
            Ok(link) => {
                drop(self.note.send(format!("joined {other}")));
                Some(link)
            }
            Err(error) => {
                let why = match error {
                    Error::OsError(source, ..) => source.to_string(),
                    other => other.to_string(),
                };
                let address = other;
                self.fail(CampaignError::NotJoined { address, why });
                None
            }
        }
    }

    /// Records an error, which ends the campaign: `error`, or, if the output directory is gone, an
    /// error that says so, since `error` then is a consequence. Does nothing if the call of ddfuzz
    /// was stopped or another error was recorded before.
    pub(super) fn fail(&mut self, error: CampaignError) {
        let gone = self.has_directory().err().map(CampaignError::from);
        if !self.session.stopped() {
            self.failed.get_or_insert(gone.unwrap_or(error));
        }
    }

    /// Does the regular work of the main process, each part when it is due: shows notes and the
    /// progress, checks the conditions that end the fuzzing, continues the examinations of hangs,
    /// saves the state, and records the best coverage of a worker.
    fn tick(&mut self, server: &WorkerServer) -> Result<(), CampaignError> {
        self.show_notes();
        if self.drawn.elapsed() >= DRAW_EVERY {
            self.drawn = Instant::now();
            self.session.screen.seen(&self.state.checkpoint.seen);
            self.session.screen.progress(&self.progress());
        }
        self.update();
        self.examine()?;
        let due = self.session.is_save_due();
        if due {
            self.has_directory()?;
        }
        if due || self.state.is_unsaved() {
            self.session.with_space(|| self.state.save())?;
        }
        if due {
            self.session.append_stats(&self.progress())?;
        }
        if self.code.is_due() {
            self.save_code()?;
        }
        let edges = server.peers.iter().map(|peer| peer.heartbeat);
        if let Some(best) = edges.max_by_key(|heartbeat| heartbeat.edges)
            && best.edges >= self.best.edges
        {
            self.best = best;
        }
        Ok(())
    }

    /// Checks that the output directory still exists. Returns an error if it is gone, since the
    /// next stored crash would begin a new directory without the earlier crashes.
    fn has_directory(&self) -> Result<(), StoreError> {
        let path = lock(self.session.store).reader().root().to_owned();
        match path.join(RECORD_FILE).is_file() {
            true => Ok(()),
            false => Err(StoreError::Unwritable {
                path,
                why: "it was removed, or renamed, while the campaign ran".to_owned(),
            }),
        }
    }

    /// Sends `text`, a note for the user, to the main thread, which shows it.
    pub(super) fn tell(&self, text: String) {
        drop(self.note.send(text));
    }

    /// Returns true if `role` is that of a worker that fuzzes; false for a supervisor of a worker,
    /// and for the worker that only minimizes.
    fn fuzzes(&self, role: Role) -> bool {
        matches!(role, Role::Worker(number) if number <= self.settings.jobs.max(1))
    }

    /// Shows the user the notes that were sent with [`GuidedEngine::tell`].
    pub(super) fn show_notes(&mut self) {
        for note in self.notes.try_iter() {
            self.session.screen.note(&note);
        }
    }

    /// Compares, at the start of the call of ddfuzz, the program with the last recorded build, and
    /// checks all groups if it was rebuilt.
    pub(super) fn begin_build(&mut self) -> Result<(), CampaignError> {
        let began = Instant::now();
        self.session.begin_build(&self.watch, &mut self.state)?;
        // What is gone with this build is not known to the registry any more.
        self.groups.flush()?;
        let campaign = self.groups.campaign().to_owned();
        self.groups = open_groups(self.session.store, &campaign, self.settings)?;
        self.paused += began.elapsed();
        Ok(())
    }

    /// Switches to the new build if the program was rebuilt: checks all groups with it, and forgets
    /// the coverage and hangs of the old build. Returns true if workers are to fuzz the new build.
    /// Returns false if the program was not rebuilt, or fuzzing is over.
    pub(super) fn take_build(&mut self) -> Result<bool, CampaignError> {
        // A worker may have failed to start because the program was being written.
        let another = self.rebuilt || self.failed.is_some() && self.watch.is_another();
        if !another || self.session.stopped() {
            return Ok(false);
        }
        self.failed = None;
        // Signatures of hangs hold for one build only; and the process that forks the workers must
        // have one thread.
        if let Some(examined) = self.examiner.reset() {
            self.take_examined(examined)?;
        }
        self.judged.clear();
        let since = self.ended.unwrap_or_else(Instant::now);
        self.session.take_build(&mut self.watch, &mut self.state)?;
        self.groups.flush()?;
        let campaign = self.groups.campaign().to_owned();
        self.groups = open_groups(self.session.store, &campaign, self.settings)?;
        self.rebuilt = false;
        // The new build has other edges.
        self.best = Heartbeat::default();
        self.code = ReachedCode::default();
        self.outstanding = 0;
        self.paused += since.elapsed();
        self.ended = None;
        Ok(!self.is_over())
    }

    /// Writes which code of an unmodified (not instrumented) program was reached to `code.json` in
    /// the output directory, if there is anything new.
    fn save_code(&mut self) -> Result<(), CampaignError> {
        let Minimizing { target, way, .. } = &self.settings.minimizing;
        let recorded = self.code.record(target, *way, self.groups.campaign());
        let code = match recorded {
            Ok(Some(code)) => code,
            Ok(None) => return Ok(()),
            Err(error) => {
                self.tell(format!("which code was reached is not recorded: {error}"));
                return Ok(());
            }
        };
        let store = self.session.store;
        let written = self.session.with_space(|| lock(store).write_code(&code));
        self.session
            .or_stopped(written.map_err(CampaignError::from), ())
    }

    /// Handles a worker's heartbeat: counts the runs that it reports, and returns the answer with
    /// newly granted runs and the verdicts about hangs that the worker has not received.
    pub(super) fn on_heartbeat(&mut self, peer: &mut Peer, status: Heartbeat) -> HeartbeatAnswer {
        self.state.checkpoint.next += status.runs;
        self.outstanding = self.outstanding.saturating_sub(peer.granted);
        peer.heartbeat = status;
        let left = match self.remaining_runs() {
            _ if self.is_over() => 0,
            // Runs granted to the minimizing worker would never be made.
            _ if !self.fuzzes(peer.role) => 0,
            Some(left) => {
                let free = left.saturating_sub(self.outstanding);
                let part = free / (GRANT_PARTS * self.settings.jobs.max(1) as u64);
                part.clamp(GRANT_RANGE.0, GRANT_RANGE.1).min(free)
            }
            None => GRANT_RANGE.1,
        };
        peer.granted = left;
        self.outstanding += left;
        let judged = self.judged.get(peer.judged..).unwrap_or_default().to_vec();
        peer.judged = self.judged.len();
        HeartbeatAnswer {
            stop: self.is_over(),
            runs: left,
            judged,
        }
    }

    /// Shows the group of an entry to the user, with the present number of its runs: as minimized
    /// if `ended` is true (the entry's minimization has ended), otherwise as new or smaller.
    pub(super) fn show(&mut self, id: &EntryId, ended: bool) -> Result<(), StoreError> {
        if let Some(mut view) = GroupView::of(&self.session.reader(), id)? {
            // Counts are written to the group only now and then.
            let seen = self.state.checkpoint.seen.get(&id.kind());
            let counted = seen.and_then(|groups| groups.get(id.major()));
            view.runs_seen = view.runs_seen.max(counted.copied().unwrap_or(0));
            match ended {
                true => self.session.screen.minimized(&view),
                false => self.session.screen.group(&view),
            }
        }
        Ok(())
    }
}

impl GuidedEngine<'_> {
    /// Checks whether fuzzing has ended, or must end now, so that workers may make no more runs.
    pub(super) fn is_over(&self) -> bool {
        self.session.stopped()
            || self.failed.is_some()
            || self.ended.is_some()
            || self.until.is_some()
            || self.rebuilt
            || self.settings.time.is_some_and(|time| self.clock() >= time)
            || self.remaining_runs() == Some(0) && self.outstanding == 0
    }

    /// Returns how many of the runs that `--runs` asks for are not reported yet; `None` if the
    /// number of runs is not limited.
    pub(super) fn remaining_runs(&self) -> Option<u64> {
        let checkpoint = &self.state.checkpoint;
        Some(checkpoint.goal?.saturating_sub(checkpoint.next))
    }

    /// Returns the fuzzing time of this call of ddfuzz so far, without the time in which the disk
    /// was full or groups were checked with another build.
    pub(super) fn fuzzed(&self) -> Duration {
        self.clock().saturating_sub(self.session.gate.paused())
    }

    /// Returns the fuzzing time of this call of ddfuzz that counts for its time limit: includes the
    /// time in which the disk was full, but not the time in which groups were checked with another
    /// build.
    fn clock(&self) -> Duration {
        let until = self.ended.unwrap_or_else(Instant::now);
        let all = until.saturating_duration_since(self.session.began);
        all.saturating_sub(self.paused)
    }

    /// Updates the number of new groups, and records whether a condition of `--until` is met and
    /// whether the program was rebuilt.
    pub(super) fn update(&mut self) {
        let elapsed = self.fuzzed();
        self.count_new(elapsed);
        let status = self.session.new_groups.status(elapsed);
        self.until = self.until.or(reached(&self.settings.until, &status));
        self.rebuilt = self.rebuilt || self.watch.has_changed();
    }

    /// Counts the new groups of crashes for `--until`, but only if the total number of groups has
    /// changed since the last count, because files may have to be read to find out which groups are
    /// muted.
    fn count_new(&mut self, elapsed: Duration) {
        let checkpoint = &self.state.checkpoint;
        let seen = checkpoint.seen.get(&Kind::Crash);
        let all = seen.map_or(0, |groups| groups.len());
        if std::mem::replace(&mut self.counted, all) == all {
            return;
        }
        self.session.count_new(&self.state, elapsed);
    }

    /// Returns the present progress of the campaign, for the screen and for `stats.jsonl`.
    pub(super) fn progress(&self) -> Progress {
        let checkpoint = &self.state.checkpoint;
        let best = self.best;
        let stable = |edges: u64| 1.0 - best.unstable.min(edges) as f64 / edges as f64;
        let workers = self.fuzzed().as_secs_f64() * self.settings.jobs.max(1) as f64;
        Progress {
            phase: self.phase,
            time_ms: self.session.began.elapsed().as_millis() as u64,
            runs_per_s: Progress::rate(checkpoint.next - self.first, self.fuzzed()),
            corpus: self.corpus,
            minimizing: self.groups.pending() as u64,
            // Before the first heartbeat of a worker that has started its target, nothing is known.
            edges: (best.edges_of > 0).then_some(best.edges),
            edges_of: (best.edges_of > 0).then_some(best.edges_of),
            stability: (best.edges > 0).then(|| stable(best.edges)),
            minimizer_share: self.minimized.as_secs_f64() / workers.max(0.001),
            ..checkpoint.progress()
        }
    }

    /// Ends the call of ddfuzz after fuzzing: examines suspected hangs, minimizes the remaining
    /// groups, saves the state, and returns the summary. If an error ended the fuzzing, only stores
    /// the suspected hangs, saves the state, and returns the error.
    pub(super) fn finish(mut self) -> Result<Summary, CampaignError> {
        if let Some(error) = self.failed.take() {
            // All crashes are stored; only counts may be lost.
            for (suspect, group) in self.examiner.take_rest() {
                let _ = self.count_or_store(&suspect, group);
            }
            let _ = self.state.save();
            return Err(error);
        }
        let fuzzed = self.fuzzed();
        self.save_code()?;
        self.examine_rest()?;
        self.save_state(false)?;
        if self.settings.when != When::Off {
            self.minimize_rest()?;
        }
        self.save_state(!self.session.interrupted())?;
        self.session.screen.progress(&self.progress());
        let ended = self.ended_by();
        Ok(Summary {
            runs_of_call: self.state.checkpoint.next - self.first,
            unstored: self.unstored,
            unnamed: self.unnamed,
            ..self.session.summary(&self.state, fuzzed, ended)?
        })
    }

    /// Returns why this call of ddfuzz has ended: by the user, by `--until` (then also the
    /// condition), by its number of runs, or by time.
    fn ended_by(&self) -> (EndedBy, Option<Until>) {
        let checkpoint = &self.state.checkpoint;
        let made_all = checkpoint.goal.is_none_or(|goal| checkpoint.next >= goal);
        match self.until {
            _ if self.session.interrupted() => (EndedBy::Interrupted, None),
            Some(until) => (EndedBy::Until, Some(until)),
            None if self.settings.runs.is_some() && made_all => (EndedBy::Runs, None),
            None => (EndedBy::Time, None),
        }
    }

    /// Saves the counts of groups and the checkpoint, and appends a line to `stats.jsonl`; waits
    /// while the disk is full, unless the user stops. `ended`: whether the call of ddfuzz is
    /// complete.
    fn save_state(&mut self, ended: bool) -> Result<(), CampaignError> {
        if ended && self.until.is_some() {
            // The condition is reached, so the next call begins a new count.
            self.state.checkpoint.goal = None;
        }
        self.show_notes();
        let progress = self.progress();
        let store = self.session.store;
        let written = self.session.with_space(|| {
            self.groups.flush()?;
            match ended {
                true => self.state.end_call()?,
                false => self.state.save()?,
            }
            lock(store).append_stats(&progress)
        });
        let written = written.map_err(CampaignError::from);
        self.session.or_stopped(written, ())
    }

    /// Minimizes the remaining groups after fuzzing, one by one, since each minimization may find
    /// further groups; last, smaller inputs that were met by chance during minimizations.
    fn minimize_rest(&mut self) -> Result<(), CampaignError> {
        let (mut taken, mut met, mut done) = (HashSet::new(), SlippedInputs::default(), 0);
        let mut rest = RestBudget::after(self.fuzzed(), &self.settings.minimizing);
        while !self.session.stopped() {
            if self.watch.is_another() {
                self.session.take_build(&mut self.watch, &mut self.state)?;
                taken.clear();
            }
            let minimizing = &self.settings.minimizing;
            let mut pending = self.state.pending(minimizing.variants, true)?;
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
            let slipped = is_slipped(&self.session.reader(), &id);
            let Some(minimizing) = rest.of(&id, slipped, &self.settings.minimizing) else {
                continue;
            };
            self.phase = Phase::minimizing(done, pending.len() as u64, minimizing.budget_time);
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
            rest.spend(&id, slipped, began.elapsed());
        }
        rest.notes().into_iter().for_each(|note| self.tell(note));
        self.show_notes();
        Ok(())
    }

    /// Minimizes one entry in the main process with the settings `how`, and shows the progress
    /// meanwhile.
    fn minimize_one(&mut self, id: &EntryId, how: &Minimizing) -> Result<(), CampaignError> {
        let progress = self.progress();
        self.session.screen.progress(&progress);
        let (began, screen) = (self.session.began, &mut self.session.screen);
        let mut watch = || screen.progress(&progress.at(began.elapsed()));
        minimize_entry(self.session.store, how, self.session.stop, id, &mut watch)
    }
}

/// Three sets of workers, by their numbers: those whose supervisor has connected, those whose
/// supervisor is still connected, and those whose worker process has connected.
#[derive(Debug, Default)]
pub(super) struct Workers {
    /// Numbers of the workers whose supervisor process has connected at least once.
    pub(super) begun: BTreeSet<usize>,
    /// Numbers of the workers whose supervisor process is still connected.
    pub(super) supervised: BTreeSet<usize>,
    /// Numbers of the workers whose worker process has connected at least once.
    pub(super) connected_once: BTreeSet<usize>,
}

/// The groups of a guided campaign; their crashes are stored by the main process.
pub(super) type Groups<'a> = GroupRegistry<SharedStore<&'a Mutex<Store>>>;

/// Creates the registry of the groups in the output directory, which knows the entries that are
/// still to be minimized.
pub(super) fn open_groups<'a>(
    store: &'a Mutex<Store>,
    campaign: &str,
    settings: &Settings,
) -> Result<Groups<'a>, StoreError> {
    let groups = GroupRegistry::new(SharedStore::new(store), campaign)?;
    let variants = settings.minimizing.variants;
    Ok(groups
        .with_muted(settings.known.clone())
        .with_variants(variants))
}
