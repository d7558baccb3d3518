//! The loop of a classic campaign: starts the workers, commits what they report in order, and has
//! groups minimized.

use std::collections::{BTreeMap, BTreeSet, HashSet, VecDeque};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use crossbeam::channel::{self, Receiver, RecvTimeoutError, Sender};

use super::ending::Over;
use super::inputs::Inputs;
use super::worker::{Chunk, Shared, start_worker};
use crate::error::CampaignError;
use crate::ledger::{Ledger, Stored, lock};
use crate::minimizing::Minimizing;
use crate::orders::{
    HangBudget, Word, is_done, is_of_target, left_for_later, minimize_entry, minimize_orders,
};
use crate::rebuild::Watch;
use crate::room::{Gate, Room};
use crate::run::Summary;
use crate::schedule::{self, Met};
use crate::screen::{Phase, Progress, Screen};
use crate::settings::{Settings, When};
use crate::until::Bounds;
use ddfuzz_exec::ExecError;
use ddfuzz_store::report::GroupView;
use ddfuzz_store::{EntryId, Kind, Store};
use ddfuzz_triage::Key;

/// Between two lines of `stats.jsonl`, and two checkpoints without a finding.
const SAVE_EVERY: Duration = Duration::from_secs(2);

/// Runs one call of the campaign that `store` belongs to. When `stop` turns true it saves its
/// state and ends.
///
/// # Errors
/// When the target cannot be run or the output directory cannot be written; what was committed
/// until then is kept.
pub fn run(
    store: &Mutex<Store>,
    campaign: &str,
    settings: &Settings,
    screen: &mut dyn Screen,
    stop: &AtomicBool,
) -> Result<Summary, CampaignError> {
    let mut ledger = Ledger::open(store, campaign)?;
    let inputs = Inputs::settle(store, &mut ledger.checkpoint, settings)?;
    ledger.checkpoint.begin_count(settings.runs);
    ledger.save()?;
    let (began, gate) = (Instant::now(), Gate::default());
    let first = ledger.checkpoint.next;
    let engine = Engine {
        store,
        settings,
        screen,
        stop,
        inputs,
        watch: Watch::of(&settings.minimizing.target)?,
        gone: HashSet::new(),
        room: Room::new(stop, &gate).until(settings.end_of(began)),
        unstored: 0,
        gate: &gate,
        over: None,
        new_seen: (0, None),
        blocked: Duration::ZERO,
        ledger,
        began,
        first,
        saved: began,
        queue: VecDeque::new(),
        ordered: 0,
        taken: HashSet::new(),
        more: BTreeSet::new(),
        spent: Duration::ZERO,
        fuzzed: None,
        hangs: None,
        done: 0,
        waiting: 0,
    };
    engine.campaign()
}

pub(super) struct Engine<'a> {
    pub(super) store: &'a Mutex<Store>,
    pub(super) settings: &'a Settings,
    pub(super) screen: &'a mut dyn Screen,
    pub(super) stop: &'a AtomicBool,
    pub(super) inputs: Inputs,
    /// Whether the program is still the same.
    pub(super) watch: Watch,
    /// Groups that are not found the same with the present build of it.
    pub(super) gone: HashSet<(Kind, String)>,
    pub(super) room: Room<'a>,
    /// Findings for which there was no room until the time was over.
    pub(super) unstored: u64,
    /// Closed while there is no room.
    pub(super) gate: &'a Gate,
    /// Why nothing more is committed.
    pub(super) over: Option<Over>,
    /// Groups that were new in this count, and when the last of them was, as time that was fuzzed.
    pub(super) new_seen: (u64, Option<Duration>),
    /// How long minimizing has kept findings from being committed.
    pub(super) blocked: Duration,
    pub(super) ledger: Ledger<'a>,
    pub(super) began: Instant,
    /// The first run of this call.
    pub(super) first: u64,
    pub(super) saved: Instant,
    /// Founders that are still to be minimized.
    pub(super) queue: VecDeque<EntryId>,
    /// Entries that the minimizing worker has not answered for.
    pub(super) ordered: u64,
    /// Entries that were queued in this call.
    pub(super) taken: HashSet<EntryId>,
    /// Groups of which runs may have found a smaller input than the one that was minimized, by
    /// the first 12 hex digits of their major keys.
    pub(super) more: BTreeSet<String>,
    /// Time that was minimized.
    pub(super) spent: Duration,
    /// When the fuzzing is over: how long it took, what hangs may take, how many groups were
    /// minimized since, and how many wait behind the queue.
    pub(super) fuzzed: Option<Duration>,
    hangs: Option<HangBudget>,
    done: u64,
    waiting: usize,
}

impl Engine<'_> {
    fn campaign(mut self) -> Result<Summary, CampaignError> {
        let fuzzed = self.fuzz_all();
        let fuzzed = self.or_stopped(fuzzed, self.fuzzing());
        let saved = self.save();
        let fuzzed = fuzzed?;
        self.or_stopped(saved, ())?;
        (self.fuzzed, self.hangs) = (
            Some(fuzzed),
            Some(HangBudget::behind(fuzzed, &self.settings.minimizing)),
        );
        if self.settings.when != When::Off {
            let minimized = self.minimize_queue().and_then(|()| self.minimize_rest());
            self.or_stopped(minimized, ())?;
        }
        if !self.interrupted() {
            let ended = self.end_call();
            self.or_stopped(ended, ())?;
        }
        let stats = self.append_stats();
        self.or_stopped(stats, ())?;
        self.screen.progress(&self.progress());
        self.summary(fuzzed)
    }

    fn summary(&self, fuzzed: Duration) -> Result<Summary, CampaignError> {
        let muted = |major: Key| self.muted(&major.short());
        let checkpoint = &self.ledger.checkpoint;
        let (ended_by, until) = self.ended_by();
        Ok(Summary {
            runs: checkpoint.next - checkpoint.count_start,
            runs_of_call: checkpoint.next - self.first,
            fuzzed,
            new_groups: self.ledger.new_groups(muted)?,
            known_crashes: checkpoint.known_crashes(|major| self.muted(major)),
            crashes: checkpoint.total(Kind::Crash),
            interrupted: self.interrupted(),
            ended_by,
            until,
            unstored: self.unstored,
            unnamed: 0,
            out_of_room: self.room.is_given_up(),
            rebuilt: self.rebuild().is_on_record(),
        })
    }

    pub(super) fn stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    /// Whether it was the user who has stopped it, and not the end of the whole time.
    pub(super) fn interrupted(&self) -> bool {
        self.stopped() && !self.settings.deadline.is_over()
    }

    pub(super) fn muted(&self, major: &str) -> bool {
        let store = lock(self.store);
        store
            .reader()
            .is_muted(Kind::Crash, major, &self.settings.known)
    }

    /// Commits a chunk as a whole: where that fails, its runs are not counted, and are made again
    /// by the call that goes on.
    pub(super) fn commit(
        &mut self,
        chunk: &Chunk,
        order: &Sender<EntryId>,
    ) -> Result<(), CampaignError> {
        let seen = (!chunk.findings.is_empty()).then(|| self.ledger.checkpoint.seen.clone());
        let done = self.commit_findings(chunk, order);
        match (&done, seen) {
            // What stands behind the run that ends the campaign is not committed.
            (Ok(()), _) => self.ledger.checkpoint.next = self.end_of(chunk),
            (Err(_), Some(seen)) => self.ledger.checkpoint.seen = seen,
            (Err(_), None) => {}
        }
        done
    }

    fn commit_findings(
        &mut self,
        chunk: &Chunk,
        order: &Sender<EntryId>,
    ) -> Result<(), CampaignError> {
        for finding in &chunk.findings {
            if self.over.is_some() {
                break;
            }
            let Some(Stored { id, founds }) = self.commit_finding(finding)? else {
                continue;
            };
            if founds && let Some(view) = self.view(&id)? {
                self.screen.group(&view);
            }
            if self.settings.when == When::Off || self.muted(id.major()) {
                continue;
            }
            if !founds {
                self.more.insert(id.major().to_owned());
            } else if self.taken.insert(id.clone()) {
                self.queue.push_back(id);
                self.give_out(order)?;
            }
        }
        Ok(())
    }

    /// Has the queue minimized, as far as that is not for later.
    pub(super) fn give_out(&mut self, order: &Sender<EntryId>) -> Result<(), CampaignError> {
        match self.settings.when {
            When::Inline => {
                let began = Instant::now();
                let done = self.minimize_smaller();
                self.blocked += began.elapsed();
                done
            }
            When::Worker => {
                // A smaller input is one by what those before it came to.
                if self.queue.is_empty() && self.ordered == 0 {
                    self.enqueue_smaller()?;
                }
                for id in self.queue.drain(..) {
                    self.ordered += 1;
                    // Nobody listens only if the worker failed, which its word will say.
                    let _ = order.send(id);
                }
                Ok(())
            }
            When::After | When::Off => Ok(()),
        }
    }

    fn minimize_queue(&mut self) -> Result<(), CampaignError> {
        while !self.stopped()
            && let Some(id) = self.queue.front().cloned()
        {
            let Some(minimizing) = self.how(&id) else {
                self.screen
                    .note(&left_for_later(self.queue.len() + self.waiting));
                return Ok(());
            };
            let began = self.began;
            let progress = Progress {
                phase: self.phase(&minimizing),
                ..self.progress()
            };
            self.screen.progress(&progress);
            // Nothing is committed meanwhile, but time goes on.
            let screen = &mut *self.screen;
            let watch = &mut || screen.progress(&progress.later(began.elapsed()));
            let since = Instant::now();
            let result = minimize_entry(self.store, &minimizing, self.stop, &id, watch);
            self.spent += since.elapsed();
            if let Some(hangs) = &mut self.hangs {
                hangs.spend(&id, since.elapsed());
            }
            self.queue.pop_front();
            self.done += u64::from(self.fuzzed.is_some() && result.is_ok());
            self.show(&id, result)?;
        }
        Ok(())
    }

    /// How an entry is minimized; `None` where there is no time for it any more.
    fn how(&self, id: &EntryId) -> Option<Minimizing> {
        let minimizing = &self.settings.minimizing;
        match &self.hangs {
            Some(hangs) => hangs.of(id, minimizing),
            None => Some(minimizing.clone()),
        }
    }

    /// What is done while a group is minimized: beside it others fuzz, until that is over.
    fn phase(&self, minimizing: &Minimizing) -> Phase {
        let left = (self.queue.len() + self.waiting) as u64;
        match self.fuzzed {
            None => Phase::Fuzzing,
            Some(_) => Phase::Minimizing {
                done: self.done,
                of: self.done + left,
                each_ms: (minimizing.budget_time).map(|budget| budget.as_millis() as u64),
            },
        }
    }

    /// Minimizes the queue, and then what runs have found of the same groups that is smaller.
    fn minimize_smaller(&mut self) -> Result<(), CampaignError> {
        self.minimize_queue()?;
        while !self.stopped() && self.enqueue_smaller()? {
            self.minimize_queue()?;
        }
        Ok(())
    }

    /// Queues the next smaller input that runs have found; whether there is one.
    fn enqueue_smaller(&mut self) -> Result<bool, CampaignError> {
        let reader = lock(self.store).reader().clone();
        while let Some(major) = self.more.first() {
            let smaller = schedule::smaller_of_runs(&reader, major)?;
            if let Some(id) = smaller.filter(|id| !self.taken.contains(id)) {
                self.taken.insert(id.clone());
                self.queue.push_back(id);
                return Ok(true);
            }
            self.more.pop_first();
        }
        Ok(false)
    }

    /// Minimizes all that is left to be, one by one, for each may slip into further groups: which
    /// is next does not depend on what an earlier call had queued.
    fn minimize_rest(&mut self) -> Result<(), CampaignError> {
        let (store, minimizing) = (self.store, &self.settings.minimizing);
        let mut met = Met::default();
        while !self.stopped() {
            let pending = self.ledger.pending(minimizing.variants, true)?;
            let fresh = |id: &EntryId| !self.muted(id.major()) && !self.taken.contains(id);
            let fresh: Vec<EntryId> = pending.into_iter().filter(fresh).collect();
            if let Some(id) = fresh.first().cloned() {
                self.waiting = fresh.len() - 1;
                self.taken.insert(id.clone());
                self.queue.push_back(id);
                self.minimize_queue()?;
                continue;
            }
            let filed = met.file_next(store, minimizing, &|major| !self.muted(major));
            if self.waits_for_room(&filed) {
                met = Met::default();
            } else if !self.or_stopped(filed, false)? {
                return Ok(());
            }
        }
        Ok(())
    }

    pub(super) fn show(
        &mut self,
        id: &EntryId,
        result: Result<(), CampaignError>,
    ) -> Result<(), CampaignError> {
        if self.waits_for_room(&result) {
            self.queue.push_front(id.clone());
            return Ok(());
        }
        if is_done(result, self.stopped())?
            && let Some(view) = self.view(id)?
        {
            self.screen.minimized(&view);
        }
        Ok(())
    }

    /// What there is to show of an entry.
    fn view(&self, id: &EntryId) -> Result<Option<GroupView>, CampaignError> {
        let reader = lock(self.store).reader().clone();
        Ok(GroupView::of(&reader, id)?)
    }

    /// Queues what an earlier call left to be minimized.
    pub(super) fn enqueue_founders(&mut self) -> Result<(), CampaignError> {
        let variants = self.settings.minimizing.variants;
        for id in self.ledger.pending(variants, false)? {
            if !self.muted(id.major()) && self.taken.insert(id.clone()) {
                self.more.insert(id.major().to_owned());
                self.queue.push_back(id);
            }
        }
        Ok(())
    }

    pub(super) fn tick(&mut self) -> Result<(), CampaignError> {
        self.screen.progress(&self.progress());
        if self.saved.elapsed() >= SAVE_EVERY || self.ledger.is_unsaved() {
            self.save()?;
        }
        if self.saved.elapsed() >= SAVE_EVERY {
            self.append_stats()?;
            self.saved = Instant::now();
        }
        Ok(())
    }

    pub(super) fn progress(&self) -> Progress {
        let checkpoint = &self.ledger.checkpoint;
        let groups = checkpoint.seen.get(&Kind::Crash).map_or(0, BTreeMap::len);
        Progress {
            time_ms: self.began.elapsed().as_millis() as u64,
            runs: checkpoint.next - checkpoint.count_start,
            runs_per_s: Progress::rate(checkpoint.next - self.first, self.fuzzing()),
            corpus: 0,
            groups: groups as u64,
            crashes: checkpoint.total(Kind::Crash),
            hangs: checkpoint.total(Kind::Hang),
            ooms: checkpoint.total(Kind::Oom),
            minimizing: (self.queue.len() + self.waiting) as u64 + self.ordered,
            minimizer_share: self
                .spent
                .div_f64(self.settings.jobs.max(1) as f64)
                .as_secs_f64()
                / self.began.elapsed().as_secs_f64().max(0.001),
            ..Progress::default()
        }
    }
}

/// Chunks that may wait to be committed before the workers pause.
const BACKLOG: usize = 1 << 16;
const TICK: Duration = Duration::from_millis(200);

type Report = Result<Chunk, ExecError>;

impl Engine<'_> {
    /// Fuzzes to the end, with each build of the program that there is meanwhile.
    pub(super) fn fuzz_all(&mut self) -> Result<Duration, CampaignError> {
        self.begin_build()?;
        loop {
            if self.settings.when != When::Off {
                self.enqueue_founders()?;
            }
            self.look_at_runs();
            if self.over.is_some() {
                return Ok(self.fuzzing());
            }
            let next = self.ledger.checkpoint.next;
            let shared = Shared {
                inputs: self.inputs.clone(),
                next: AtomicU64::new(next),
                end: self.ledger.checkpoint.goal.unwrap_or(u64::MAX),
                bounds: Bounds::new(self.stop, self.settings.end_of(self.began), self.gate),
            };
            match self.fuzz(&shared) {
                Ok(_) if matches!(self.over, Some(Over::Rebuilt)) => self.take_build()?,
                Err(error) if is_of_target(&error) && self.is_rebuilt() => self.take_build()?,
                answer => return answer,
            }
        }
    }

    /// Fuzzes until the end of the count, of the time, or of the user's patience.
    fn fuzz(&mut self, shared: &Shared<'_>) -> Result<Duration, CampaignError> {
        let (report, reports) = channel::bounded::<Report>(BACKLOG);
        let (order, orders) = channel::unbounded::<EntryId>();
        let (word, words) = channel::unbounded::<Word>();
        std::thread::scope(|scope| {
            for _ in 0..self.settings.jobs.max(1) {
                let report = report.clone();
                let settings = self.settings;
                scope.spawn(move || match start_worker(shared, settings) {
                    Ok(worker) => worker.work(&report),
                    Err(error) => drop(report.send(Err(error))),
                });
            }
            drop(report);
            if self.settings.when == When::Worker {
                let (store, stop) = (self.store, self.stop);
                let minimizing = &self.settings.minimizing;
                scope.spawn(move || minimize_orders(store, minimizing, stop, &orders, &word));
            } else {
                drop((orders, word));
            }
            let done = self.commit_all(shared, &reports, &order, &words);
            shared.bounds.break_off(done.is_err());
            // A worker may be waiting for room; nothing more is committed.
            while reports.recv().is_ok() {}
            drop(order);
            let minimized = self.hear_out(&words);
            let fuzzed = done?;
            minimized?;
            Ok(fuzzed)
        })
    }

    /// Commits chunks in the order of their runs.
    fn commit_all(
        &mut self,
        shared: &Shared<'_>,
        reports: &Receiver<Report>,
        order: &Sender<EntryId>,
        words: &Receiver<Word>,
    ) -> Result<Duration, CampaignError> {
        let mut waiting = BTreeMap::new();
        let mut cut_short = false;
        loop {
            self.give_out(order)?;
            match reports.recv_timeout(TICK) {
                Ok(chunk) => {
                    match chunk {
                        Ok(chunk) => drop(waiting.insert(chunk.first, chunk)),
                        // The user's Ctrl-C may have reached a starting target, too.
                        Err(_) if self.stopped() || self.is_rebuilt() => {}
                        Err(error) => return Err(error.into()),
                    }
                }
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => {
                    // What is committed behind the deadline was run before it.
                    let time = self.settings.time.unwrap_or(Duration::MAX);
                    return Ok(self.fuzzing().min(time));
                }
            }
            while !cut_short
                && self.over.is_none()
                && let Some(chunk) = waiting.remove(&self.ledger.checkpoint.next)
            {
                cut_short = chunk.runs < chunk.planned;
                self.commit(&chunk, order)?;
            }
            for word in words.try_iter() {
                self.hear(word)?;
            }
            self.tick()?;
            self.look_at_clock();
            shared.bounds.break_off(self.over.is_some());
        }
    }

    /// Waits for the minimizing worker, whose orders have ended.
    fn hear_out(&mut self, words: &Receiver<Word>) -> Result<(), CampaignError> {
        loop {
            match words.recv_timeout(TICK) {
                Ok(word) => self.hear(word)?,
                Err(RecvTimeoutError::Timeout) => self.screen.progress(&self.progress()),
                Err(RecvTimeoutError::Disconnected) => return Ok(()),
            }
        }
    }

    fn hear(&mut self, (id, spent, result): Word) -> Result<(), CampaignError> {
        self.ordered -= 1;
        self.spent += spent;
        self.show(&id, result)
    }
}
