//! The loop of a watch: searches the sources for files, hands them out to the examiner threads,
//! commits the results (counts and stores them), has groups minimized by the minimizing thread, and
//! decides when the watch ends. Results are committed in the order in which the files were handed
//! out. Only results of files that the watched fuzzer reports as hangs come late; these are
//! committed on arrival.

use std::collections::{BTreeMap, HashMap, HashSet, VecDeque};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use crossbeam::channel::{Receiver, RecvTimeoutError, Sender};

use super::registry::ContentRegistry;
use super::sources::{FileQueue, Sources};
use super::{ExaminedInput, Producer, Producing, Task, WatchSettings};
use crate::until::CLASSIFICATION_TIME;
use crate::{
    CampaignError, CampaignSession, Classified, DiskFullError, MinimizerReply, PauseGate, Phase,
    ProgramWatch, Progress, Screen, SessionSettings, SlippedInputs, Stored, Summary, Until, When,
    is_of_target, lock,
};
use ddfuzz_exec::{ExecError, Target};
use ddfuzz_store::report::{EndedBy, size};
use ddfuzz_store::{EntryId, Group, Store};
use ddfuzz_triage::Key;

/// Longest wait for a result of the examiner threads (which run found files) before the sources are
/// searched for further files.
const TICK: Duration = Duration::from_millis(100);
/// Longest wait for a reply of the minimizing thread before the progress on the screen is updated.
const MINIMIZER_TICK: Duration = Duration::from_millis(200);
/// Greatest number of searches for files after the watched fuzzer has ended; they go on until no
/// file changes any more.
const LAST_LOOKS: u32 = 10;

/// The engine's ends of its channels: it sends tasks to the examiner threads, which run files, and
/// receives their results; it sends entries to the minimizing thread, and receives its replies.
pub(super) struct Channels {
    pub(super) task: Sender<Task>,
    pub(super) answers: Receiver<Result<ExaminedInput, ExecError>>,
    pub(super) order: Sender<EntryId>,
    pub(super) replies: Receiver<MinimizerReply>,
}

/// Why a watch of another fuzzer's files examines no more files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum EndReason {
    /// The watched fuzzer has ended, and all files that it dropped are examined.
    Ended,
    /// The user's time limit for the watch is over.
    Time,
    /// A condition of `--until` has ended the watch.
    Until(Until),
    /// The program was rebuilt, so all files are examined again with the new build.
    Rebuilt,
}

/// State of one call of ddfuzz for a watch (which examines the files that another fuzzer drops),
/// and its main loop.
pub(super) struct WatchEngine<'a> {
    pub(super) session: CampaignSession<'a>,
    settings: &'a WatchSettings,
    producer: &'a mut dyn Producer,
    registry: ContentRegistry<'a>,
    build: ProgramWatch,
    files: FileQueue,
    minimize_queue: MinimizeQueue,
    producing: Producing,
    /// Number of searches for files since the watched fuzzer has ended.
    last_looks: u32,
    /// Why the watch examines no more files; `None` while it still examines files.
    end_reason: Option<EndReason>,
    /// Results of examiner threads that must wait for the results of earlier tasks, by task number:
    /// results are committed (counted and stored) in the order of the tasks.
    early: BTreeMap<u64, ExaminedInput>,
    /// How long the call of ddfuzz has watched for files; `None` until it stops watching.
    watched: Option<Duration>,
    /// Whether results were counted and stored that are not in the saved checkpoint yet.
    unsaved: bool,
    /// Number of inputs that earlier calls (invocations of ddfuzz) of the watch have examined.
    first: u64,
    /// Number of findings that could not be stored, because the disk was full to the end.
    unstored: u64,
}

// The phases of the call.
impl<'a> WatchEngine<'a> {
    pub(super) fn begin(
        store: &'a Mutex<Store>,
        campaign: &str,
        settings: &'a WatchSettings,
        producer: &'a mut dyn Producer,
        screen: &'a mut dyn Screen,
        stop: &'a AtomicBool,
        gate: &'a PauseGate,
    ) -> Result<WatchEngine<'a>, CampaignError> {
        let registry = ContentRegistry::open(store, campaign, &settings.minimizing.target)?;
        let root = lock(store).reader().root().to_owned();
        let common = SessionSettings {
            deadline: &settings.deadline,
            minimizing: &settings.minimizing,
            jobs: settings.jobs,
            known: &settings.known,
            time: settings.time,
            until: &settings.until,
        };
        let mut session = CampaignSession::new(store, screen, stop, gate, common);
        session.disk_wait.patient = settings.waits_for_room;
        let mut engine = WatchEngine {
            session,
            settings,
            producer,
            build: ProgramWatch::of(&settings.minimizing.target)?,
            files: FileQueue::new(
                Sources::new(&settings.sources, &root),
                settings.max_len,
                settings.leaks,
            ),
            minimize_queue: MinimizeQueue::default(),
            producing: Producing::Running,
            last_looks: 0,
            end_reason: None,
            early: BTreeMap::new(),
            watched: None,
            unsaved: true,
            first: registry.campaign.checkpoint.next,
            unstored: 0,
            registry,
        };
        engine.save(false)?;
        engine
            .session
            .begin_build(&engine.build, &mut engine.registry.campaign)?;
        engine.registry.forget_gone()?;
        engine.enqueue_founders()?;
        Ok(engine)
    }

    /// Returns the major and minor keys (coarse and fine hashes) of the known crashes that
    /// reproduce each time.
    pub(super) fn steady_keys(&self) -> HashSet<(Key, Key)> {
        self.registry.steady_keys()
    }

    /// Returns the size in bytes of the smallest input of each group for which earlier calls have
    /// made a full crash record, by major key (hash that identifies the group).
    pub(super) fn least_sizes(&self) -> HashMap<Key, u64> {
        self.registry.least_sizes()
    }

    /// Watches for files with one build of the program until the watch ends, then minimizes the
    /// remaining groups, and returns the summary; `None` if the program was rebuilt, so that the
    /// watch has to start again.
    pub(super) fn run(&mut self, channels: Channels) -> Result<Option<Summary>, CampaignError> {
        let (order, replies) = (channels.order, channels.replies);
        let watched = self.watch(channels.task, &channels.answers, &order, &replies);
        if self.is_rebuilt(&watched) {
            self.wait_for_minimizer(&replies);
            return Ok(None);
        }
        let watched = self.or_stopped(watched);
        if watched.is_ok() {
            self.note_left();
        }
        if self.end_reason.is_none() && self.session.disk_wait.is_given_up() {
            self.end_reason = Some(EndReason::Time);
        }
        let elapsed = self.session.elapsed();
        self.watched = Some(elapsed);
        self.minimize_queue.done = 0;
        let saved = self.save(false);
        watched?;
        self.or_stopped(saved)?;
        let minimized = self.minimize_rest(&order, &replies);
        if self.is_rebuilt(&minimized) {
            return Ok(None);
        }
        self.or_stopped(minimized)?;
        if !self.session.interrupted() {
            let ended = self.save(true);
            self.or_stopped(ended)?;
        }
        let progress = self.progress();
        self.session.show_last(&progress)?;
        self.summary(elapsed).map(Some)
    }

    fn watch(
        &mut self,
        task: Sender<Task>,
        answers: &Receiver<Result<ExaminedInput, ExecError>>,
        order: &Sender<EntryId>,
        replies: &Receiver<MinimizerReply>,
    ) -> Result<(), CampaignError> {
        self.watched = None;
        while !self.session.stopped() && self.end_reason.is_none() {
            self.producing = self.producer.poll()?;
            self.files.add(self.producer.dropped());
            self.search();
            let registry = &mut self.registry;
            (self.files).hand_out(&task, registry, self.session.screen);
            self.receive_answers(answers)?;
            self.receive_replies(replies)?;
            if matches!(self.settings.when, When::Inline | When::Worker) {
                self.order_next(order, self.is_idle())?;
            }
            self.tick()?;
            self.check_clock();
        }
        drop(task);
        // Inputs that were handed out before the time was over are still committed, unless their
        // runs are abandoned.
        while !self.session.stopped()
            && self.end_reason == Some(EndReason::Time)
            && self.files.open() > 0
        {
            if self.has_abandoned() {
                return self.commit_rest(answers);
            }
            self.receive_answers(answers)?;
            self.receive_replies(replies)?;
            self.tick()?;
        }
        Ok(())
    }

    /// Returns when the examiner threads abandon their runs although nobody has stopped the call of
    /// ddfuzz: two seconds after the end of the time for the watch. `None` if that has no limit.
    fn abandon_at(&self) -> Option<Instant> {
        self.session.end?.checked_add(CLASSIFICATION_TIME)
    }

    /// Returns a copy of `target` for the examiner threads, whose runs are also abandoned some time
    /// after the end of the time for the watch ([`WatchEngine::abandon_at`]), and when `is_over`
    /// turns true.
    pub(super) fn abandoning(&self, target: &Target, is_over: &Arc<AtomicBool>) -> Target {
        let is_over = Arc::clone(is_over);
        let stopped = target.abandon_when.clone().or_at(self.abandon_at());
        let stopped = stopped.or(move || is_over.load(Ordering::Relaxed));
        target.clone().abandoned_when(stopped)
    }

    /// Returns true if the examiner threads have abandoned their runs because the time for the watch
    /// is over.
    fn has_abandoned(&self) -> bool {
        self.abandon_at().is_some_and(|end| Instant::now() >= end)
    }

    /// Searches the sources for new files if a search is due. Ends the watch if the watched fuzzer
    /// has ended and all files are examined. Files that still change after the last searches are
    /// left out, with a warning.
    fn search(&mut self) {
        // The producer was asked before the search, so the search sees all its files.
        let ended = self.producing == Producing::Ended;
        if !self.files.is_due() {
            return;
        }
        let moving = self.files.search(self.session.screen);
        self.last_looks += u32::from(ended);
        let patient = self.last_looks < LAST_LOOKS;
        if !ended || !moving.is_empty() && patient || !self.is_idle() {
            return;
        }
        for path in moving {
            let path = path.display();
            self.session
                .screen
                .note(&format!("warning: {path} is not run: it is being written"));
        }
        self.end_reason = Some(EndReason::Ended);
    }

    /// Returns true if all files found so far are examined and their results are counted and
    /// stored; otherwise false.
    fn is_idle(&self) -> bool {
        self.files.left() == 0 && self.files.open() == 0
    }

    /// Tells the user how many files the watch has found but not examined, if there are any.
    fn note_left(&mut self) {
        let left = self.files.left() + self.files.open();
        if left > 0 {
            let files = size::counted(left, "file");
            self.session.screen.note(&format!(
                "{files} not examined; continue with --resume, or run `ddfuzz triage`"
            ));
        }
    }

    /// Returns `result`, but replaces two errors by `Ok`: a full disk, if the user has stopped the
    /// call or its time is over; and a target that cannot be run, if the user has stopped the call
    /// (Ctrl-C may have stopped the target, too).
    fn or_stopped(&self, result: Result<(), CampaignError>) -> Result<(), CampaignError> {
        match result {
            Err(CampaignError::Exec(_)) if self.session.stopped() => Ok(()),
            answer => self.session.or_stopped(answer, ()),
        }
    }
}

// Commits in the order in which the files were handed out.
impl<'a> WatchEngine<'a> {
    /// Waits up to 100 ms for a result of the examiner threads (which run found files), and commits
    /// (counts and stores) all results whose turn it is ([`FileQueue::due`]).
    fn receive_answers(
        &mut self,
        answers: &Receiver<Result<ExaminedInput, ExecError>>,
    ) -> Result<(), CampaignError> {
        let mut answer = match answers.recv_timeout(TICK) {
            Ok(answer) => Some(answer),
            Err(RecvTimeoutError::Timeout) => None,
            Err(RecvTimeoutError::Disconnected)
                if self.session.stopped() || self.has_abandoned() =>
            {
                None
            }
            Err(RecvTimeoutError::Disconnected) => return Err(CampaignError::Broken),
        };
        while let Some(received) = answer {
            // The user's Ctrl-C may have reached the target, too.
            if self.session.stopped() {
                return Ok(());
            }
            let received = received?;
            self.early.insert(received.task.at, received);
            answer = answers.try_recv().ok();
        }
        while !matches!(self.end_reason, Some(EndReason::Until(_)))
            && let Some(at) = self.files.due(|at| self.early.contains_key(at))
            && let Some(answer) = self.early.remove(&at)
        {
            self.commit(&answer)?;
            self.files.close(at);
        }
        Ok(())
    }

    /// Commits all results that have come, in the order of the tasks, also those that would wait for
    /// the results of earlier tasks, since the runs of these were abandoned.
    fn commit_rest(
        &mut self,
        answers: &Receiver<Result<ExaminedInput, ExecError>>,
    ) -> Result<(), CampaignError> {
        for received in answers.try_iter() {
            let received = received?;
            self.early.insert(received.task.at, received);
        }
        for (at, answer) in std::mem::take(&mut self.early) {
            self.commit(&answer)?;
            self.files.close(at);
        }
        Ok(())
    }

    /// Commits the result of an examined input: counts it in its group, stores the input if the
    /// group needs it, records the input in the journal of triage (record of the inputs run), and
    /// checks the conditions of `--until`.
    fn commit(&mut self, answer: &ExaminedInput) -> Result<(), CampaignError> {
        let (what, line) = self.registry.interpret(answer);
        let mut stored = None;
        if let Some(what) = &what {
            let filed = self.with_space(|registry| registry.file(answer, what));
            self.unstored += u64::from(filed.is_err() && self.session.disk_wait.is_given_up());
            stored = filed?;
        }
        if let Some(stored) = &stored {
            self.with_space(|registry| registry.write_script(stored))?;
        }
        self.with_space(|registry| registry.note(&line))?;
        self.unsaved = true;
        if what.is_some_and(|what| !matches!(what, Classified::Flaky(_))) {
            let elapsed = self.session.elapsed();
            self.session.count_new(&self.registry.campaign, elapsed);
            self.end_if_reached(true);
        }
        match stored {
            Some(stored) => self.show_stored(&stored),
            None => Ok(()),
        }
    }

    /// Handles a finding whose input was stored. If it founds a new group, shows the group to the
    /// user, and queues the finding for minimization unless minimization is off, the group is
    /// muted, or the finding is a memory leak. Any stored finding makes the minimizer search the
    /// output directory for work again.
    fn show_stored(&mut self, stored: &Stored) -> Result<(), CampaignError> {
        self.minimize_queue.exhausted = false;
        if !stored.founds {
            return Ok(());
        }
        self.session.show_new(&stored.id)?;
        if self.settings.when != When::Off && self.is_minimized(&stored.id) {
            self.minimize_queue.enqueue(stored.id.clone());
        }
        Ok(())
    }

    /// Calls `write`, which writes to the output directory, and repeats it while it fails because
    /// the disk is full; returns its result.
    fn with_space<T, E: DiskFullError>(
        &mut self,
        mut write: impl FnMut(&mut ContentRegistry<'a>) -> Result<T, E>,
    ) -> Result<T, E> {
        self.session.with_space(|| write(&mut self.registry))
    }

    fn tick(&mut self) -> Result<(), CampaignError> {
        let progress = self.progress();
        self.session.screen.progress(&progress);
        if self.session.is_save_due() {
            self.save(false)?;
            self.session.append_stats(&progress)?;
        }
        Ok(())
    }

    /// Saves the checkpoint and syncs the journal of triage (record of the inputs run) if results
    /// were committed since the last save. `ended`: whether the call of ddfuzz is complete, which
    /// is then recorded, too.
    fn save(&mut self, ended: bool) -> Result<(), CampaignError> {
        if self.unsaved || ended {
            self.with_space(|registry| registry.save(ended))?;
            self.unsaved = false;
        }
        Ok(())
    }

    fn runs(&self) -> u64 {
        match self.producer.runs() {
            0 => self.registry.campaign.checkpoint.next - self.first,
            runs => runs,
        }
    }

    /// Returns the number of runs of the campaign in all calls of ddfuzz together or, if that is
    /// larger, the number of runs in this call: the runs of the watched fuzzer are known for this
    /// call only.
    fn runs_of_campaign(&self) -> u64 {
        self.runs().max(self.registry.campaign.checkpoint.next)
    }

    fn progress(&self) -> Progress {
        let queue = &self.minimize_queue;
        let waiting = queue.waiting();
        let budget = self.settings.minimizing.budget_time;
        let watched = (self.watched).unwrap_or_else(|| self.session.began.elapsed());
        Progress {
            phase: match self.watched {
                Some(_) if waiting > 0 => Phase::minimizing(queue.done, waiting, budget),
                _ => Phase::Fuzzing,
            },
            runs: self.runs_of_campaign(),
            minimizing: waiting,
            minimizer_share: self.session.minimizer_share(queue.spent),
            ..(self.session).progress(&self.registry.campaign, self.runs(), watched)
        }
    }

    fn summary(&self, watched: Duration) -> Result<Summary, CampaignError> {
        let ended = match self.end_reason {
            _ if self.session.interrupted() => (EndedBy::Interrupted, None),
            Some(EndReason::Until(until)) => (EndedBy::Until, Some(until)),
            // Without a reason, the deadline of the whole call was over.
            Some(EndReason::Time) | None => (EndedBy::Time, None),
            Some(EndReason::Ended | EndReason::Rebuilt) => (self.producer.ended_by(), None),
        };
        let campaign = &self.registry.campaign;
        Ok(Summary {
            runs: self.runs(),
            runs_of_call: self.runs(),
            runs_of_campaign: self.runs_of_campaign(),
            unstored: self.unstored,
            unread: self.files.unread(),
            ..self.session.summary(campaign, watched, ended)?
        })
    }
}

// When the watch ends, and rebuilt programs.
impl WatchEngine<'_> {
    fn check_clock(&mut self) {
        self.end_if_reached(false);
        let is_over = |time| self.session.began.elapsed() >= time;
        if self.end_reason.is_none() && self.settings.time.is_some_and(is_over) {
            self.end_reason = Some(EndReason::Time);
        }
        if self.end_reason.is_none() && self.build.has_changed() {
            self.end_reason = Some(EndReason::Rebuilt);
        }
    }

    fn end_if_reached(&mut self, of_runs: bool) {
        let reached = self.session.reached(of_runs, self.session.elapsed());
        self.end_reason = self.end_reason.or(reached.map(EndReason::Until));
    }

    /// Returns true if the watch has to start again because the program was rebuilt. Either the
    /// watch has noticed the change, or it ended (`done`: its result) because the watched fuzzer
    /// ended or the target could not be run, and the program now differs from the watched build.
    /// Returns false in all other cases, and if the user has stopped the call.
    fn is_rebuilt(&mut self, done: &Result<(), CampaignError>) -> bool {
        let starts_again = match done {
            Ok(()) => self.end_reason == Some(EndReason::Ended),
            Err(error) => is_of_target(error),
        };
        if !self.session.stopped() && starts_again && self.build.is_another() {
            self.end_reason = Some(EndReason::Rebuilt);
        }
        !self.session.stopped() && self.end_reason == Some(EndReason::Rebuilt)
    }

    /// Switches to the present build of the program. If it differs from the last build, checks all
    /// groups with it. Empties the queues of files and of minimizations: later searches list all
    /// files again, and files that were not run with this build are run.
    pub(super) fn take_build(&mut self) -> Result<(), CampaignError> {
        self.end_reason = None;
        self.session
            .take_build(&mut self.build, &mut self.registry.campaign)?;
        if self.session.stopped() {
            return Ok(());
        }
        self.registry.take_build()?;
        self.files.restart();
        self.minimize_queue = MinimizeQueue {
            spent: self.minimize_queue.spent,
            ..MinimizeQueue::default()
        };
        self.early.clear();
        self.last_looks = 0;
        self.enqueue_founders()
    }
}

/// The entries (stored findings) that wait to be minimized, and the state of the minimizing thread.
#[derive(Default)]
struct MinimizeQueue {
    queue: VecDeque<EntryId>,
    /// The entry (stored finding) that the minimizing thread works on; `None` if the thread is
    /// idle.
    being_minimized: Option<EntryId>,
    /// All entries (stored findings) that were queued for minimization in this call of ddfuzz.
    queued: HashSet<EntryId>,
    /// Time that this call of ddfuzz has spent on minimization.
    spent: Duration,
    /// Number of entries (stored findings) whose minimization has ended since the watch ended.
    done: u64,
    /// Whether the last search of the output directory found no more entries to minimize, and
    /// nothing was stored or minimized since.
    exhausted: bool,
    /// Slips: inputs that crashed in other groups during minimizations. They are stored when no
    /// entry remains to be minimized.
    slipped: SlippedInputs,
}

impl MinimizeQueue {
    fn enqueue(&mut self, id: EntryId) {
        if self.queued.insert(id.clone()) {
            self.queue.push_back(id);
        }
    }

    /// Returns the number of entries (stored findings) whose minimization has not ended: those in
    /// the queue, and the one being minimized.
    fn waiting(&self) -> u64 {
        self.queue.len() as u64 + u64::from(self.being_minimized.is_some())
    }
}

// Minimization, by the minimizing thread.
impl WatchEngine<'_> {
    /// Returns true if the group of the entry `id` may be minimized. Returns false for a muted
    /// group and for a memory leak: leaks are only found when a process ends, but a minimization
    /// runs many inputs in one process.
    fn is_minimized(&self, id: &EntryId) -> bool {
        let group = lock(self.session.store)
            .reader()
            .group(id.kind(), id.major());
        let leak = |group: Group| group.record.class.is_leak();
        !self.session.is_muted(id.major()) && !group.ok().flatten().is_some_and(leak)
    }

    /// Queues the entries that earlier calls of ddfuzz have not minimized (first findings of
    /// groups, and smaller inputs). Does nothing if groups are minimized only after the watch or
    /// never.
    fn enqueue_founders(&mut self) -> Result<(), CampaignError> {
        if matches!(self.settings.when, When::After | When::Off) {
            return Ok(());
        }
        let variants = self.settings.minimizing.variants;
        for id in self.registry.campaign.pending(variants, false)? {
            if self.is_minimized(&id) {
                self.minimize_queue.enqueue(id);
            }
        }
        Ok(())
    }

    /// Sends the next queued entry through `order` to the minimizing thread, if the thread is free.
    /// `idle`: whether all found files are examined. If they are and the queue is empty, first
    /// queues the most urgent entry of all groups, including hangs, memory blow-ups, and groups
    /// found only during minimizations.
    fn order_next(&mut self, order: &Sender<EntryId>, idle: bool) -> Result<(), CampaignError> {
        if self.minimize_queue.being_minimized.is_some() || self.session.stopped() {
            return Ok(());
        }
        if self.minimize_queue.queue.is_empty() && idle && !self.minimize_queue.exhausted {
            self.enqueue_rest()?;
        }
        if let Some(id) = self.minimize_queue.queue.pop_front() {
            self.minimize_queue.being_minimized = Some(id.clone());
            // The receiver is gone only if the thread has panicked, which its silence will say.
            let _ = order.send(id);
        }
        Ok(())
    }

    /// Queues the most urgent entry to minimize among all groups in the output directory; only one
    /// entry, since its minimization may find further groups. If there is none, stores a slip (an
    /// input that crashed in another way during a minimization), and queues the slip.
    fn enqueue_rest(&mut self) -> Result<(), CampaignError> {
        let minimizing = &self.settings.minimizing;
        loop {
            let pending = self.registry.campaign.pending(minimizing.variants, true)?;
            let fresh =
                |id: &EntryId| !self.minimize_queue.queued.contains(id) && self.is_minimized(id);
            if let Some(id) = pending.into_iter().find(fresh) {
                self.minimize_queue.enqueue(id);
                return Ok(());
            }
            let mut slipped = std::mem::take(&mut self.minimize_queue.slipped);
            let filed = slipped.file_next(self.session.store, minimizing, &|major| {
                !self.session.is_muted(major)
            });
            if self.session.waits_for_space(&filed) {
                continue;
            }
            self.minimize_queue.slipped = slipped;
            if !filed? {
                self.minimize_queue.exhausted = true;
                return Ok(());
            }
        }
    }

    fn receive_replies(&mut self, replies: &Receiver<MinimizerReply>) -> Result<(), CampaignError> {
        replies
            .try_iter()
            .try_for_each(|reply| self.receive_reply(reply))
    }

    fn minimize_rest(
        &mut self,
        order: &Sender<EntryId>,
        replies: &Receiver<MinimizerReply>,
    ) -> Result<(), CampaignError> {
        loop {
            if self.settings.when != When::Off {
                self.order_next(order, true)?;
            }
            if self.minimize_queue.being_minimized.is_none() {
                return Ok(());
            }
            match replies.recv_timeout(MINIMIZER_TICK) {
                Ok(reply) => self.receive_reply(reply)?,
                Err(RecvTimeoutError::Timeout) => self.session.screen.progress(&self.progress()),
                Err(RecvTimeoutError::Disconnected) => return Err(CampaignError::Broken),
            }
        }
    }

    /// Waits until the minimizing thread is free; ignores the error of its present minimization,
    /// since the program was rebuilt.
    fn wait_for_minimizer(&mut self, replies: &Receiver<MinimizerReply>) {
        while self.minimize_queue.being_minimized.is_some() {
            match replies.recv_timeout(MINIMIZER_TICK) {
                Ok(reply) => drop(self.receive_reply(reply)),
                Err(RecvTimeoutError::Timeout) => self.session.screen.progress(&self.progress()),
                Err(RecvTimeoutError::Disconnected) => return,
            }
        }
    }

    fn receive_reply(&mut self, (id, spent, result): MinimizerReply) -> Result<(), CampaignError> {
        self.minimize_queue.being_minimized = None;
        self.minimize_queue.spent += spent;
        self.minimize_queue.done += 1;
        self.minimize_queue.exhausted = false;
        if self.session.waits_for_space(&result) {
            self.minimize_queue.queue.push_front(id);
            return Ok(());
        }
        self.session.show_minimized(&id, result).map(drop)
    }
}
