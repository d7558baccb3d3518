//! Runs a campaign: starts the workers, commits what they report, and has groups minimized.

use std::collections::{BTreeMap, HashSet, VecDeque};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use crossbeam::channel::{self, Receiver, RecvTimeoutError, Sender};

use super::inputs::Inputs;
use super::worker::{Chunk, Shared, start_worker};
use crate::campaign::error::CampaignError;
use crate::campaign::ledger::{Ledger, lock};
use crate::campaign::orders::{Word, is_of_target, minimize_entry, minimize_orders};
use crate::campaign::screen::{Progress, Screen};
use crate::campaign::settings::{Settings, When};
use crate::campaign::summary::Summary;
use crate::exec::ExecError;
use crate::minimize::MinimizeError;
use crate::report::GroupView;
use crate::store::{EntryId, Kind, Store};
use crate::triage::Key;

/// Chunks that may wait to be committed before the workers pause.
const BACKLOG: usize = 1 << 16;
const TICK: Duration = Duration::from_millis(200);
/// Between two lines of `stats.jsonl`, and two checkpoints without a finding.
const SAVE_EVERY: Duration = Duration::from_secs(2);

type Report = Result<Chunk, ExecError>;

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
    let began = Instant::now();
    let shared = Shared {
        inputs,
        next: AtomicU64::new(ledger.checkpoint.next),
        end: ledger.checkpoint.goal.unwrap_or(u64::MAX),
        stop,
        // A time that no clock will see is none.
        deadline: settings.time.and_then(|time| began.checked_add(time)),
        broken: AtomicBool::new(false),
        crash_exit: settings.minimizing.target.crash_exit,
    };
    let first = ledger.checkpoint.next;
    let engine = Engine {
        store,
        settings,
        screen,
        stop,
        ledger,
        began,
        first,
        saved: began,
        queue: VecDeque::new(),
        ordered: 0,
        taken: HashSet::new(),
        spent: Duration::ZERO,
    };
    engine.campaign(&shared)
}

struct Engine<'a> {
    store: &'a Mutex<Store>,
    settings: &'a Settings,
    screen: &'a mut dyn Screen,
    stop: &'a AtomicBool,
    ledger: Ledger<'a>,
    began: Instant,
    /// The first run of this call.
    first: u64,
    saved: Instant,
    /// Founders that are still to be minimized.
    queue: VecDeque<EntryId>,
    /// Founders that the minimizing worker has not answered for.
    ordered: u64,
    /// Founders that were queued in this call.
    taken: HashSet<EntryId>,
    /// Time that was minimized.
    spent: Duration,
}

impl Engine<'_> {
    fn campaign(mut self, shared: &Shared<'_>) -> Result<Summary, CampaignError> {
        if self.settings.when != When::Off {
            self.enqueue_founders()?;
        }
        let fuzzed = self.fuzz(shared);
        let saved = self.ledger.save();
        let fuzzed = fuzzed?;
        saved?;
        if self.settings.when != When::Off {
            self.minimize_queue()?;
            self.minimize_slips()?;
        }
        if !self.stopped() {
            self.ledger.end_call()?;
        }
        let progress = self.progress();
        lock(self.store).append_stats(&progress)?;
        self.screen.progress(&progress);
        let muted = |major: Key| self.muted(&major.short());
        let checkpoint = &self.ledger.checkpoint;
        Ok(Summary {
            runs: self.ledger.checkpoint.next - self.ledger.checkpoint.count_start,
            runs_of_call: self.ledger.checkpoint.next - self.first,
            fuzzed,
            new_groups: self.ledger.new_groups(muted)?,
            known_crashes: checkpoint.known_crashes(|major| self.muted(major)),
            interrupted: self.stopped(),
        })
    }

    fn stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    fn muted(&self, major: &str) -> bool {
        let known = &self.settings.known;
        // A group that cannot be read now is no reason to end: it is only not muted.
        known.has_major(major)
            || known.names_stables()
                && lock(self.store)
                    .reader()
                    .is_known_by_names(Kind::Crash, major, known)
                    .unwrap_or(false)
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
                let (store, settings, stop) = (self.store, self.settings, self.stop);
                scope.spawn(move || minimize_orders(store, settings, stop, &orders, &word));
            } else {
                drop((orders, word));
            }
            let done = self.commit_all(&reports, &order, &words);
            shared.broken.store(done.is_err(), Ordering::Relaxed);
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
                        Err(_) if self.stopped() => {}
                        Err(error) => return Err(error.into()),
                    }
                }
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => {
                    // What is committed behind the deadline was run before it.
                    let time = self.settings.time.unwrap_or(Duration::MAX);
                    return Ok(self.began.elapsed().min(time));
                }
            }
            while !cut_short && let Some(chunk) = waiting.remove(&self.ledger.checkpoint.next) {
                cut_short = chunk.runs < chunk.planned;
                self.commit(&chunk, order)?;
            }
            for word in words.try_iter() {
                self.hear(word)?;
            }
            self.tick()?;
        }
    }

    /// Commits a chunk as a whole: where that fails, its runs are not counted, and are made again
    /// by the call that goes on.
    fn commit(&mut self, chunk: &Chunk, order: &Sender<EntryId>) -> Result<(), CampaignError> {
        let seen = (!chunk.findings.is_empty()).then(|| self.ledger.checkpoint.seen.clone());
        let done = self.commit_findings(chunk, order);
        match (&done, seen) {
            (Ok(()), _) => self.ledger.checkpoint.next += chunk.runs,
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
            let Some(id) = self.ledger.commit(finding)? else {
                continue;
            };
            if let Some(view) = self.view(&id)? {
                self.screen.group(&view);
            }
            if self.settings.when == When::Off || self.muted(id.major()) {
                continue;
            }
            if self.taken.insert(id.clone()) {
                self.queue.push_back(id);
                self.give_out(order)?;
            }
        }
        Ok(())
    }

    /// Has the queue minimized, as far as that is not for later.
    fn give_out(&mut self, order: &Sender<EntryId>) -> Result<(), CampaignError> {
        match self.settings.when {
            When::Inline => self.minimize_queue(),
            When::Worker => {
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
            let (began, runs) = (self.began, self.ledger.checkpoint.next - self.first);
            let progress = self.progress();
            self.screen.progress(&progress);
            // Nothing is committed meanwhile, but time goes on.
            let screen = &mut *self.screen;
            let watch = &mut || screen.progress(&progress.later(runs, began.elapsed()));
            let since = Instant::now();
            let result = minimize_entry(self.store, self.settings, self.stop, &id, watch);
            self.spent += since.elapsed();
            self.queue.pop_front();
            self.show(&id, result)?;
        }
        Ok(())
    }

    /// Minimizes the groups that were only slipped into, one by one, for each may slip into
    /// further ones: which is next does not depend on what an earlier call had queued.
    fn minimize_slips(&mut self) -> Result<(), CampaignError> {
        while !self.stopped() {
            let pending = self.ledger.pending(true)?;
            let fresh = |id: &EntryId| !self.muted(id.major()) && !self.taken.contains(id);
            let Some(id) = pending.into_iter().find(fresh) else {
                return Ok(());
            };
            self.taken.insert(id.clone());
            self.queue.push_back(id);
            self.minimize_queue()?;
        }
        Ok(())
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

    fn show(
        &mut self,
        id: &EntryId,
        result: Result<(), CampaignError>,
    ) -> Result<(), CampaignError> {
        match result {
            Err(CampaignError::Minimize(MinimizeError::Interrupted { .. })) => return Ok(()),
            Err(error) if self.stopped() && is_of_target(&error) => return Ok(()),
            Err(error) => return Err(error),
            Ok(()) => {}
        }
        if let Some(view) = self.view(id)? {
            self.screen.minimized(&view);
        }
        Ok(())
    }

    /// What there is to show of an entry.
    fn view(&self, id: &EntryId) -> Result<Option<GroupView>, CampaignError> {
        let reader = lock(self.store).reader().clone();
        let (group, entry) = (reader.group(id.kind(), id.major())?, reader.entry(id)?);
        let both = group.zip(entry);
        let view = both.map(|(group, entry)| GroupView::load(&group, &entry));
        Ok(view.transpose()?)
    }

    /// Queues what an earlier call left to be minimized.
    fn enqueue_founders(&mut self) -> Result<(), CampaignError> {
        for id in self.ledger.pending(false)? {
            if !self.muted(id.major()) && self.taken.insert(id.clone()) {
                self.queue.push_back(id);
            }
        }
        Ok(())
    }

    fn tick(&mut self) -> Result<(), CampaignError> {
        self.screen.progress(&self.progress());
        if self.saved.elapsed() >= SAVE_EVERY || self.ledger.is_unsaved() {
            self.ledger.save()?;
        }
        if self.saved.elapsed() >= SAVE_EVERY {
            lock(self.store).append_stats(&self.progress())?;
            self.saved = Instant::now();
        }
        Ok(())
    }

    fn progress(&self) -> Progress {
        let checkpoint = &self.ledger.checkpoint;
        let groups = checkpoint.seen.get(&Kind::Crash).map_or(0, BTreeMap::len);
        Progress {
            time_ms: self.began.elapsed().as_millis() as u64,
            runs: checkpoint.next - checkpoint.count_start,
            runs_per_s: Progress::rate(checkpoint.next - self.first, self.began.elapsed()),
            corpus: 0,
            groups: groups as u64,
            crashes: checkpoint.total(Kind::Crash),
            hangs: checkpoint.total(Kind::Hang),
            ooms: checkpoint.total(Kind::Oom),
            minimizing: self.queue.len() as u64 + self.ordered,
            minimizer_share: self
                .spent
                .div_f64(self.settings.jobs.max(1) as f64)
                .as_secs_f64()
                / self.began.elapsed().as_secs_f64().max(0.001),
            ..Progress::default()
        }
    }
}
