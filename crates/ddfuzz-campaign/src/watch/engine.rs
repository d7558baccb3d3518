//! The loop of a watch: looks for files, hands them out, commits, and decides when it is over.

use std::collections::{BTreeMap, HashSet};
use std::sync::Mutex;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use crossbeam::channel::{Receiver, RecvTimeoutError, Sender};

use super::minimize::MinimizeQueue;
use super::registry::ContentRegistry;
use super::sources::{Queue, Sources};
use crate::classifier::Classified;
use crate::disk_full::{Fullness, Gate, Room};
use crate::error::CampaignError;
use crate::ledger::{Stored, lock};
use crate::orders::{MinimizerReply, is_of_target};
use crate::rebuild::Watch;
use crate::run::Summary;
use crate::screen::{Phase, Progress, Screen};
use crate::session::CampaignSession;
use crate::settings::When;
use crate::until::{NewGroups, Until, reached};
use crate::watch::{ExaminedInput, Producer, Producing, Task, Watching};
use ddfuzz_exec::ExecError;
use ddfuzz_store::report::{EndedBy, size};
use ddfuzz_store::{EntryId, Group, Store};
use ddfuzz_triage::Key;

/// How long answers are waited for, at most.
const TICK: Duration = Duration::from_millis(100);
/// Between two lines of `stats.jsonl`, and two checkpoints without a finding.
const SAVE_EVERY: Duration = Duration::from_secs(2);
/// How many looks wait for a file to stop changing after its producer has ended.
const LAST_LOOKS: u32 = 10;

/// The ends of the channels to the threads.
pub(super) struct Channels {
    pub(super) task: Sender<Task>,
    pub(super) answers: Receiver<Result<ExaminedInput, ExecError>>,
    pub(super) order: Sender<EntryId>,
    pub(super) replies: Receiver<MinimizerReply>,
}

/// Why nothing more is examined.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum EndReason {
    /// The producer has ended, and what it left is examined.
    Ended,
    /// The time is.
    Time,
    /// What was waited for is reached.
    Until(Until),
    /// The program is another one; all begins again with it.
    Rebuilt,
}

pub(super) struct WatchEngine<'a> {
    pub(super) session: CampaignSession<'a>,
    pub(super) settings: &'a Watching,
    pub(super) producer: &'a mut dyn Producer,
    pub(super) registry: ContentRegistry<'a>,
    /// Whether the program is still the same.
    pub(super) build: Watch,
    pub(super) queue: Queue,
    pub(super) minimize_queue: MinimizeQueue,
    pub(super) producing: Producing,
    /// Looks since the producer has ended.
    pub(super) last_looks: u32,
    pub(super) over: Option<EndReason>,
    /// Answers that came before one which is to be committed first.
    pub(super) early: BTreeMap<u64, ExaminedInput>,
    /// The next answer to commit.
    pub(super) next: u64,
    /// How long was watched, once that is over.
    pub(super) watched: Option<Duration>,
    saved: Instant,
    unsaved: bool,
    /// Inputs that earlier calls have examined.
    pub(super) first: u64,
}

impl<'a> WatchEngine<'a> {
    pub(super) fn begin(
        store: &'a Mutex<Store>,
        campaign: &str,
        settings: &'a Watching,
        producer: &'a mut dyn Producer,
        screen: &'a mut dyn Screen,
        stop: &'a AtomicBool,
        gate: &'a Gate,
    ) -> Result<WatchEngine<'a>, CampaignError> {
        let registry = ContentRegistry::open(store, campaign, &settings.minimizing.target)?;
        let root = lock(store).reader().root().to_owned();
        let (first, began) = (registry.ledger.checkpoint.next, Instant::now());
        let session = CampaignSession {
            store,
            screen,
            stop,
            deadline: &settings.deadline,
            minimizing: &settings.minimizing,
            jobs: settings.jobs,
            known: &settings.known,
            gate,
            room: Room::new(stop, gate)
                .patient(settings.waits_for_room)
                .until(settings.time.and_then(|time| began.checked_add(time))),
            began,
            new_groups: NewGroups::default(),
            gone: HashSet::new(),
        };
        let mut engine = WatchEngine {
            session,
            settings,
            producer,
            registry,
            build: Watch::of(&settings.minimizing.target)?,
            queue: Queue::new(Sources::new(&settings.sources, &root), settings.max_len),
            minimize_queue: MinimizeQueue::default(),
            producing: Producing::Running,
            last_looks: 0,
            over: None,
            early: BTreeMap::new(),
            next: 0,
            watched: None,
            saved: Instant::now(),
            unsaved: true,
            first,
        };
        engine.save(false)?;
        engine.session.begin_build(&engine.build)?;
        engine.begin_build()?;
        Ok(engine)
    }

    /// The keys of which a record is at hand.
    pub(super) fn steady_keys(&self) -> HashSet<(Key, Key)> {
        self.registry.steady_keys()
    }

    /// Watches to the end, and minimizes what is left to be; or until the program is another one,
    /// and then there is no summary yet.
    pub(super) fn run(&mut self, lines: Channels) -> Result<Option<Summary>, CampaignError> {
        let Channels {
            task,
            answers,
            order,
            replies,
        } = lines;
        let watched = self.watch(task, &answers, &order, &replies);
        if self.is_rebuilt(&watched) {
            self.wait_for_minimizer(&replies);
            return Ok(None);
        }
        let watched = self.or_stopped(watched, ());
        if self.over.is_none() && self.session.room.is_given_up() {
            self.over = Some(EndReason::Time);
        }
        let elapsed = self.session.elapsed();
        self.watched = Some(elapsed);
        self.minimize_queue.count_from_here();
        let saved = self.save(false);
        watched?;
        self.or_stopped(saved, ())?;
        let minimized = self.minimize_rest(&order, &replies);
        if self.is_rebuilt(&minimized) {
            return Ok(None);
        }
        self.or_stopped(minimized, ())?;
        if !self.session.interrupted() {
            let ended = self.save(true);
            self.or_stopped(ended, ())?;
        }
        let stats = self.session.append_stats(&self.progress());
        self.or_stopped(stats, ())?;
        self.session.screen.progress(&self.progress());
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
        while !self.session.stopped() && self.over.is_none() {
            self.producing = self.producer.poll()?;
            self.queue.add(self.producer.dropped());
            self.look();
            self.hand_out(&task)?;
            self.receive_answers(answers)?;
            self.receive_replies(replies)?;
            self.order_minimization(order)?;
            self.tick()?;
            self.look_at_clock();
        }
        drop(task);
        // What is under way when the time is over was begun before.
        while !self.session.stopped()
            && self.over == Some(EndReason::Time)
            && self.next < self.queue.given()
        {
            self.receive_answers(answers)?;
            self.receive_replies(replies)?;
            self.tick()?;
        }
        self.note_left();
        Ok(())
    }

    /// Looks through the sources where that is due.
    fn look(&mut self) {
        // Before the look: what was dropped before the producer ended is seen by it.
        let ended = self.producing == Producing::Ended;
        if !self.queue.is_due() {
            return;
        }
        let moving = self.queue.look(self.session.screen);
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
        self.over = Some(EndReason::Ended);
    }

    /// Whether all that was found is examined and committed.
    pub(super) fn is_idle(&self) -> bool {
        self.queue.is_empty() && self.next == self.queue.given()
    }

    /// Hands out as many tasks as the threads have room for.
    fn hand_out(&mut self, task: &Sender<Task>) -> Result<(), CampaignError> {
        self.queue
            .hand_out(task, &mut self.registry, self.session.screen)
    }

    /// Waits for an answer, and commits those whose turn it is.
    fn receive_answers(
        &mut self,
        answers: &Receiver<Result<ExaminedInput, ExecError>>,
    ) -> Result<(), CampaignError> {
        let mut answer = match answers.recv_timeout(TICK) {
            Ok(answer) => Some(answer),
            Err(RecvTimeoutError::Timeout) => None,
            Err(RecvTimeoutError::Disconnected) if self.session.stopped() => None,
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
        while !matches!(self.over, Some(EndReason::Until(_)))
            && let Some(answer) = self.early.remove(&self.next)
        {
            self.commit(&answer)?;
            self.next += 1;
        }
        Ok(())
    }

    /// Files the result of an input, counts it, and notes that it is done.
    fn commit(&mut self, answer: &ExaminedInput) -> Result<(), CampaignError> {
        let (what, line) = self.registry.read(answer);
        let mut stored = None;
        if let Some(what) = &what {
            stored = self.made(|registry| registry.file(answer, what))?;
        }
        if let Some(stored) = &stored {
            self.made(|registry| registry.write_script(stored))?;
        }
        self.made(|registry| registry.note(&line))?;
        self.unsaved = true;
        if let Some(crash) = &line.crash {
            let major = crash.major.short();
            self.session.note_return(crash.kind, &major)?;
        }
        if what.is_some_and(|what| !matches!(what, Classified::Flaky(_))) {
            self.count_new();
        }
        match stored {
            Some(stored) => self.show_new_group(&stored),
            None => Ok(()),
        }
    }

    /// Shows a new group, and has it minimized.
    fn show_new_group(&mut self, stored: &Stored) -> Result<(), CampaignError> {
        self.minimize_queue.look_again();
        if !stored.founds {
            return Ok(());
        }
        if let Some(view) = self.session.view(&stored.id)? {
            self.session.screen.group(&view);
        }
        if self.settings.when != When::Off && self.is_minimized(&stored.id) {
            self.minimize_queue.enqueue(stored.id.clone());
        }
        Ok(())
    }

    /// Does it when there is room on the disk.
    fn made<T, E: Fullness>(
        &mut self,
        mut write: impl FnMut(&mut ContentRegistry<'a>) -> Result<T, E>,
    ) -> Result<T, E> {
        self.session.made(|| write(&mut self.registry))
    }

    /// Whether a group is minimized, once it is its turn. Leaks are not: they are looked for when
    /// a process ends, and searches run many inputs in one.
    pub(super) fn is_minimized(&self, id: &EntryId) -> bool {
        let group = lock(self.session.store)
            .reader()
            .group(id.kind(), id.major());
        let leak = |group: Group| group.record.class.is_leak();
        !self.session.is_muted(id.major()) && !group.ok().flatten().is_some_and(leak)
    }

    /// Shows the progress, and saves it from time to time.
    pub(super) fn tick(&mut self) -> Result<(), CampaignError> {
        self.session.screen.progress(&self.progress());
        if self.saved.elapsed() >= SAVE_EVERY {
            self.save(false)?;
            self.session.append_stats(&self.progress())?;
            self.saved = Instant::now();
        }
        Ok(())
    }

    /// Saves the counts where there are new ones. `ended`: the call is complete.
    fn save(&mut self, ended: bool) -> Result<(), CampaignError> {
        if self.unsaved || ended {
            self.made(|registry| registry.save(ended))?;
            self.unsaved = false;
        }
        Ok(())
    }

    /// Says what was found and not examined.
    fn note_left(&mut self) {
        let left = self.queue.left() + self.queue.given() - self.next;
        if left > 0 {
            let files = size::counted(left, "file");
            self.session.screen.note(&format!(
                "{files} not examined; continue with --resume, or run `ddfuzz triage`"
            ));
        }
    }

    /// The user who stops gets what is stored, and no error of a full disk or of a target that
    /// Ctrl-C has reached, too.
    fn or_stopped<T>(
        &self,
        result: Result<T, CampaignError>,
        otherwise: T,
    ) -> Result<T, CampaignError> {
        match result {
            Err(CampaignError::Exec(_)) if self.session.stopped() => Ok(otherwise),
            answer => self.session.or_stopped(answer, otherwise),
        }
    }

    /// Counts the groups that are new in this call, and looks whether they are enough.
    fn count_new(&mut self) {
        let new = self.session.count_new(&self.registry.ledger);
        let elapsed = self.session.elapsed();
        self.session.new_groups.update(new, elapsed);
        self.end_with(Until::is_of_runs);
    }

    /// Whether the clock ends it.
    pub(super) fn look_at_clock(&mut self) {
        self.end_with(|until| !until.is_of_runs());
        let is_over = |time| self.session.began.elapsed() >= time;
        if self.over.is_none() && self.settings.time.is_some_and(is_over) {
            self.over = Some(EndReason::Time);
        }
        if self.over.is_none() && self.build.has_changed() {
            self.over = Some(EndReason::Rebuilt);
        }
    }

    fn end_with(&mut self, which: impl Fn(&Until) -> bool) {
        let status = self.session.new_groups.status(self.session.elapsed());
        let ends: Vec<Until> = self.settings.until.iter().copied().filter(which).collect();
        if self.over.is_none()
            && let Some(until) = reached(&ends, &status)
        {
            self.over = Some(EndReason::Until(until));
        }
    }

    /// Runs of this call.
    fn runs(&self) -> u64 {
        match self.producer.runs() {
            0 => self.registry.ledger.checkpoint.next - self.first,
            runs => runs,
        }
    }

    /// What is done: when nothing more is watched, what is left is minimized.
    fn phase(&self) -> Phase {
        let waiting = self.minimize_queue.waiting();
        match self.watched {
            Some(_) if waiting > 0 => Phase::Minimizing {
                done: self.minimize_queue.done(),
                of: self.minimize_queue.done() + waiting,
                each_ms: (self.settings.minimizing.budget_time)
                    .map(|budget| budget.as_millis() as u64),
            },
            _ => Phase::Fuzzing,
        }
    }

    pub(super) fn progress(&self) -> Progress {
        let checkpoint = &self.registry.ledger.checkpoint;
        let elapsed = self.session.began.elapsed();
        Progress {
            phase: self.phase(),
            time_ms: elapsed.as_millis() as u64,
            runs: self.runs(),
            runs_per_s: Progress::rate(self.runs(), self.watched.unwrap_or(elapsed)),
            minimizing: self.minimize_queue.waiting(),
            minimizer_share: self.minimize_queue.spent.as_secs_f64()
                / self.settings.jobs.max(1) as f64
                / elapsed.as_secs_f64().max(0.001),
            ..checkpoint.progress()
        }
    }

    /// The summary of the call.
    pub(super) fn summary(&self, watched: Duration) -> Result<Summary, CampaignError> {
        let ended = match self.over {
            _ if self.session.interrupted() => (EndedBy::Interrupted, None),
            Some(EndReason::Until(until)) => (EndedBy::Until, Some(until)),
            Some(EndReason::Time) => (EndedBy::Time, None),
            Some(EndReason::Ended | EndReason::Rebuilt) | None => (EndedBy::Fuzzer, None),
        };
        // The fuzzer that dropped the files still has them: none is unstored.
        Ok(Summary {
            runs: self.runs(),
            runs_of_call: self.runs(),
            ..self
                .session
                .summary(&self.registry.ledger, watched, ended)?
        })
    }

    /// Has what is left to be minimized queued, where that is not for later.
    pub(super) fn begin_build(&mut self) -> Result<(), CampaignError> {
        match self.settings.when {
            When::Inline | When::Worker => self.enqueue_founders(),
            When::After | When::Off => Ok(()),
        }
    }

    /// Whether what was done has ended because the program is another one.
    pub(super) fn is_rebuilt(&mut self, done: &Result<(), CampaignError>) -> bool {
        let failed = done.as_ref().is_err_and(is_of_target);
        if !self.session.stopped() && failed && self.build.is_another() {
            self.over = Some(EndReason::Rebuilt);
        }
        !self.session.stopped() && self.over == Some(EndReason::Rebuilt)
    }

    /// Takes the program as it is now: all groups are checked, and all files are looked at again,
    /// as they would be by a call with another build.
    pub(super) fn take_build(&mut self) -> Result<(), CampaignError> {
        self.over = None;
        self.session.take_build(&mut self.build)?;
        if self.session.stopped() {
            return Ok(());
        }
        self.registry.begin_anew()?;
        self.queue.begin_anew();
        self.minimize_queue.begin_anew();
        self.early.clear();
        (self.next, self.last_looks) = (0, 0);
        self.begin_build()
    }
}
