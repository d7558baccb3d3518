//! The loop of a classic campaign: starts the workers, commits what they report in order, and has
//! groups minimized.

use std::collections::{BTreeMap, BTreeSet, HashSet, VecDeque};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::time::{Duration, Instant};

use crossbeam::channel::{self, Receiver, RecvTimeoutError, Sender};

use super::inputs::Inputs;
use super::worker::{Chunk, WorkerContext, start_worker};
use crate::campaign_state::{CampaignState, Stored};
use crate::classifier::{Classified, Finding};
use crate::disk_full::{DiskWait, PauseGate};
use crate::error::CampaignError;
use crate::minimization_queue::{
    HangBudget, MinimizerReply, hangs_left_note, is_done, is_of_target, minimize_entry,
    run_minimizer,
};
use crate::minimizing::Minimizing;
use crate::rebuild::ProgramWatch;
use crate::run::Summary;
use crate::schedule::{self, SlippedInputs};
use crate::screen::{Phase, Progress, Screen};
use crate::session::CampaignSession;
use crate::settings::{Settings, When};
use crate::until::{NewGroups, StopCondition, Until, reached};
use ddfuzz_exec::ExecError;
use ddfuzz_store::report::EndedBy;
use ddfuzz_store::{EntryId, Kind, Store};

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
    let mut ledger = CampaignState::open(store, campaign)?;
    let inputs = Inputs::settle(store, &mut ledger.checkpoint, settings)?;
    ledger.checkpoint.begin_count(settings.runs);
    ledger.save()?;
    let (began, gate) = (Instant::now(), PauseGate::default());
    let first = ledger.checkpoint.next;
    let session = CampaignSession {
        store,
        screen,
        stop,
        deadline: &settings.deadline,
        minimizing: &settings.minimizing,
        jobs: settings.jobs,
        known: &settings.known,
        gate: &gate,
        room: DiskWait::new(stop, &gate).until(settings.end_of(began)),
        began,
        new_groups: NewGroups::default(),
        gone: HashSet::new(),
    };
    let engine = ClassicEngine {
        session,
        settings,
        inputs,
        watch: ProgramWatch::of(&settings.minimizing.target)?,
        unstored: 0,
        over: None,
        blocked: Duration::ZERO,
        ledger,
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

/// Why nothing more is committed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum EndReason {
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

struct ClassicEngine<'a> {
    session: CampaignSession<'a>,
    settings: &'a Settings,
    inputs: Inputs,
    /// Whether the program is still the same.
    watch: ProgramWatch,
    /// Findings for which there was no room until the time was over.
    unstored: u64,
    /// Why nothing more is committed.
    over: Option<EndReason>,
    /// How long minimizing has kept findings from being committed.
    blocked: Duration,
    ledger: CampaignState<'a>,
    /// The first run of this call.
    first: u64,
    saved: Instant,
    /// Founders that are still to be minimized.
    queue: VecDeque<EntryId>,
    /// Entries that the minimizing worker has not answered for.
    ordered: u64,
    /// Entries that were queued in this call.
    taken: HashSet<EntryId>,
    /// Groups of which runs may have found a smaller input than the one that was minimized, by
    /// the first 12 hex digits of their major keys.
    more: BTreeSet<String>,
    /// Time that was minimized.
    spent: Duration,
    /// When the fuzzing is over: how long it took, what hangs may take, how many groups were
    /// minimized since, and how many wait after the queue.
    fuzzed: Option<Duration>,
    hangs: Option<HangBudget>,
    done: u64,
    waiting: usize,
}

impl ClassicEngine<'_> {
    fn campaign(mut self) -> Result<Summary, CampaignError> {
        let fuzzed = self.fuzz_all();
        let fuzzed = self.session.or_stopped(fuzzed, self.fuzzing());
        let saved = self.save();
        let fuzzed = fuzzed?;
        self.session.or_stopped(saved, ())?;
        (self.fuzzed, self.hangs) = (
            Some(fuzzed),
            Some(HangBudget::after(fuzzed, &self.settings.minimizing)),
        );
        if self.settings.when != When::Off {
            let minimized = self.minimize_queue().and_then(|()| self.minimize_rest());
            self.session.or_stopped(minimized, ())?;
        }
        if !self.session.interrupted() {
            let ended = self.end_call();
            self.session.or_stopped(ended, ())?;
        }
        let stats = self.session.append_stats(&self.progress());
        self.session.or_stopped(stats, ())?;
        self.session.screen.progress(&self.progress());
        self.summary(fuzzed)
    }

    fn summary(&self, fuzzed: Duration) -> Result<Summary, CampaignError> {
        let ended = self.ended_by();
        Ok(Summary {
            runs_of_call: self.ledger.checkpoint.next - self.first,
            unstored: self.unstored,
            ..self.session.summary(&self.ledger, fuzzed, ended)?
        })
    }

    /// Commits a chunk as a whole: where that fails, its runs are not counted, and are made again
    /// by the call that continues.
    fn commit(&mut self, chunk: &Chunk, order: &Sender<EntryId>) -> Result<(), CampaignError> {
        let seen = (!chunk.findings.is_empty()).then(|| self.ledger.checkpoint.seen.clone());
        let done = self.commit_findings(chunk, order);
        match (&done, seen) {
            // What follows the run that ends the campaign is not committed.
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
            if founds && let Some(view) = self.session.view(&id)? {
                self.session.screen.group(&view);
            }
            if self.settings.when == When::Off || self.session.is_muted(id.major()) {
                continue;
            }
            if !founds {
                self.more.insert(id.major().to_owned());
            } else if self.taken.insert(id.clone()) {
                self.queue.push_back(id);
                self.order_minimization(order)?;
            }
        }
        Ok(())
    }

    /// Has the queue minimized, as far as that is not for later.
    fn order_minimization(&mut self, order: &Sender<EntryId>) -> Result<(), CampaignError> {
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
                    // The receiver is gone only if the worker failed, which its reply will say.
                    let _ = order.send(id);
                }
                Ok(())
            }
            When::After | When::Off => Ok(()),
        }
    }

    fn minimize_queue(&mut self) -> Result<(), CampaignError> {
        while !self.session.stopped()
            && let Some(id) = self.queue.front().cloned()
        {
            let Some(minimizing) = self.how(&id) else {
                self.session
                    .screen
                    .note(&hangs_left_note(self.queue.len() + self.waiting));
                return Ok(());
            };
            let began = self.session.began;
            let progress = Progress {
                phase: self.phase(&minimizing),
                ..self.progress()
            };
            self.session.screen.progress(&progress);
            // Nothing is committed meanwhile, but time goes on.
            let screen = &mut *self.session.screen;
            let watch = &mut || screen.progress(&progress.later(began.elapsed()));
            let since = Instant::now();
            let result = minimize_entry(
                self.session.store,
                &minimizing,
                self.session.stop,
                &id,
                watch,
            );
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
        while !self.session.stopped() && self.enqueue_smaller()? {
            self.minimize_queue()?;
        }
        Ok(())
    }

    /// Queues the next smaller input that runs have found; whether there is one.
    fn enqueue_smaller(&mut self) -> Result<bool, CampaignError> {
        let reader = self.session.reader();
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
        let (store, minimizing) = (self.session.store, &self.settings.minimizing);
        let mut met = SlippedInputs::default();
        while !self.session.stopped() {
            let pending = self.ledger.pending(minimizing.variants, true)?;
            let fresh =
                |id: &EntryId| !self.session.is_muted(id.major()) && !self.taken.contains(id);
            let fresh: Vec<EntryId> = pending.into_iter().filter(fresh).collect();
            if let Some(id) = fresh.first().cloned() {
                self.waiting = fresh.len() - 1;
                self.taken.insert(id.clone());
                self.queue.push_back(id);
                self.minimize_queue()?;
                continue;
            }
            let filed = met.file_next(store, minimizing, &|major| !self.session.is_muted(major));
            if self.session.waits_for_space(&filed) {
                met = SlippedInputs::default();
            } else if !self.session.or_stopped(filed, false)? {
                return Ok(());
            }
        }
        Ok(())
    }

    fn show(
        &mut self,
        id: &EntryId,
        result: Result<(), CampaignError>,
    ) -> Result<(), CampaignError> {
        if self.session.waits_for_space(&result) {
            self.queue.push_front(id.clone());
            return Ok(());
        }
        if is_done(result, self.session.stopped())?
            && let Some(view) = self.session.view(id)?
        {
            self.session.screen.minimized(&view);
        }
        Ok(())
    }

    /// Queues what an earlier call left to be minimized.
    fn enqueue_founders(&mut self) -> Result<(), CampaignError> {
        let variants = self.settings.minimizing.variants;
        for id in self.ledger.pending(variants, false)? {
            if !self.session.is_muted(id.major()) && self.taken.insert(id.clone()) {
                self.more.insert(id.major().to_owned());
                self.queue.push_back(id);
            }
        }
        Ok(())
    }

    fn tick(&mut self) -> Result<(), CampaignError> {
        self.session.screen.progress(&self.progress());
        if self.saved.elapsed() >= SAVE_EVERY || self.ledger.is_unsaved() {
            self.save()?;
        }
        if self.saved.elapsed() >= SAVE_EVERY {
            self.session.append_stats(&self.progress())?;
            self.saved = Instant::now();
        }
        Ok(())
    }

    fn progress(&self) -> Progress {
        let checkpoint = &self.ledger.checkpoint;
        let elapsed = self.session.began.elapsed();
        let jobs = self.settings.jobs.max(1) as f64;
        Progress {
            time_ms: elapsed.as_millis() as u64,
            runs_per_s: Progress::rate(checkpoint.next - self.first, self.fuzzing()),
            minimizing: (self.queue.len() + self.waiting) as u64 + self.ordered,
            minimizer_share: self.spent.div_f64(jobs).as_secs_f64()
                / elapsed.as_secs_f64().max(0.001),
            ..checkpoint.progress()
        }
    }
}

/// Chunks that may wait to be committed before the workers pause.
const BACKLOG: usize = 1 << 16;
const TICK: Duration = Duration::from_millis(200);

type Report = Result<Chunk, ExecError>;

impl ClassicEngine<'_> {
    /// Fuzzes to the end, with each build of the program that there is meanwhile.
    fn fuzz_all(&mut self) -> Result<Duration, CampaignError> {
        self.session.begin_build(&self.watch)?;
        loop {
            if self.settings.when != When::Off {
                self.enqueue_founders()?;
            }
            self.look_at_runs();
            if self.over.is_some() {
                return Ok(self.fuzzing());
            }
            let next = self.ledger.checkpoint.next;
            let shared = WorkerContext {
                inputs: self.inputs.clone(),
                next: AtomicU64::new(next),
                end: self.ledger.checkpoint.goal.unwrap_or(u64::MAX),
                stop_condition: StopCondition::new(
                    self.session.stop,
                    self.settings.end_of(self.session.began),
                    self.session.gate,
                ),
            };
            match self.fuzz(&shared) {
                Ok(_) if matches!(self.over, Some(EndReason::Rebuilt)) => self.take_build()?,
                Err(error) if is_of_target(&error) && self.is_rebuilt() => self.take_build()?,
                answer => return answer,
            }
        }
    }

    /// Fuzzes until the end of the count, of the time, or of the user's patience.
    fn fuzz(&mut self, shared: &WorkerContext<'_>) -> Result<Duration, CampaignError> {
        let (report, reports) = channel::bounded::<Report>(BACKLOG);
        let (order, orders) = channel::unbounded::<EntryId>();
        let (reply, replies) = channel::unbounded::<MinimizerReply>();
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
                let (store, stop) = (self.session.store, self.session.stop);
                let minimizing = &self.settings.minimizing;
                scope.spawn(move || run_minimizer(store, minimizing, stop, &orders, &reply));
            } else {
                drop((orders, reply));
            }
            let done = self.commit_all(shared, &reports, &order, &replies);
            shared.stop_condition.break_off(done.is_err());
            // A worker may be waiting for room; nothing more is committed.
            while reports.recv().is_ok() {}
            drop(order);
            let minimized = self.wait_for_minimizer(&replies);
            let fuzzed = done?;
            minimized?;
            Ok(fuzzed)
        })
    }

    /// Commits chunks in the order of their runs.
    fn commit_all(
        &mut self,
        shared: &WorkerContext<'_>,
        reports: &Receiver<Report>,
        order: &Sender<EntryId>,
        replies: &Receiver<MinimizerReply>,
    ) -> Result<Duration, CampaignError> {
        let mut waiting = BTreeMap::new();
        let mut cut_short = false;
        loop {
            self.order_minimization(order)?;
            match reports.recv_timeout(TICK) {
                Ok(chunk) => {
                    match chunk {
                        Ok(chunk) => drop(waiting.insert(chunk.first, chunk)),
                        // The user's Ctrl-C may have reached a starting target, too.
                        Err(_) if self.session.stopped() || self.is_rebuilt() => {}
                        Err(error) => return Err(error.into()),
                    }
                }
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => {
                    // What is committed after the deadline was run before it.
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
            for reply in replies.try_iter() {
                self.receive_reply(reply)?;
            }
            self.tick()?;
            self.look_at_clock();
            shared.stop_condition.break_off(self.over.is_some());
        }
    }

    /// Waits for the minimizing worker, whose orders have ended.
    fn wait_for_minimizer(
        &mut self,
        replies: &Receiver<MinimizerReply>,
    ) -> Result<(), CampaignError> {
        loop {
            match replies.recv_timeout(TICK) {
                Ok(reply) => self.receive_reply(reply)?,
                Err(RecvTimeoutError::Timeout) => self.session.screen.progress(&self.progress()),
                Err(RecvTimeoutError::Disconnected) => return Ok(()),
            }
        }
    }

    fn receive_reply(&mut self, (id, spent, result): MinimizerReply) -> Result<(), CampaignError> {
        self.ordered -= 1;
        self.spent += spent;
        self.show(&id, result)
    }
}

impl ClassicEngine<'_> {
    /// How long was fuzzed: not while the disk was full.
    fn fuzzing(&self) -> Duration {
        self.fuzzed.unwrap_or_else(|| self.session.elapsed())
    }

    /// Counts the groups that runs of this count have found new.
    fn count_new(&mut self) {
        let new = self.session.count_new(&self.ledger);
        let elapsed = self.fuzzing().saturating_sub(self.blocked);
        self.session.new_groups.update(new, elapsed);
    }

    /// Whether what the runs until now have found is enough.
    fn look_at_runs(&mut self) {
        self.count_new();
        self.end_with(None, Until::is_of_runs);
    }

    /// Whether the clock, or a look at the program, ends it.
    fn look_at_clock(&mut self) {
        self.end_with(None, |until| !until.is_of_runs());
        if self.over.is_none() && self.watch.has_changed() {
            self.over = Some(EndReason::Rebuilt);
        }
    }

    fn end_with(&mut self, end: Option<u64>, which: impl Fn(&Until) -> bool) {
        let ends: Vec<Until> = self.settings.until.iter().copied().filter(which).collect();
        let elapsed = self.fuzzing().saturating_sub(self.blocked);
        if self.over.is_none()
            && let Some(until) = reached(&ends, &self.session.new_groups.status(elapsed))
        {
            self.over = Some(EndReason::Until { until, end });
        }
    }

    /// Commits a finding, when there is room.
    fn commit_finding(&mut self, finding: &Finding) -> Result<Option<Stored>, CampaignError> {
        let seen = |ledger: &CampaignState<'_>| {
            let seen = ledger.checkpoint.seen.get(&Kind::Crash);
            seen.map_or(0, BTreeMap::len)
        };
        let groups = seen(&self.ledger);
        let stored = self.session.made(|| self.ledger.commit(finding));
        self.unstored += u64::from(stored.is_err() && self.session.room.is_given_up());
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
        let (kind, major) = match &finding.what {
            Classified::Known { kind, major } => (*kind, major.short()),
            Classified::Crash(crash) => (Kind::of_class(&crash.class), crash.keys.major.short()),
            Classified::Flaky(_) => return Ok(()),
        };
        Ok(self.session.note_return(kind, &major)?)
    }

    /// The first run that does not count once this chunk is committed.
    fn end_of(&self, chunk: &Chunk) -> u64 {
        match self.over {
            Some(EndReason::Until { end: Some(end), .. }) => end,
            _ => chunk.first + chunk.runs,
        }
    }

    /// What has ended this call.
    fn ended_by(&self) -> (EndedBy, Option<Until>) {
        let checkpoint = &self.ledger.checkpoint;
        match self.over {
            _ if self.session.interrupted() => (EndedBy::Interrupted, None),
            Some(EndReason::Until { until, .. }) => (EndedBy::Until, Some(until)),
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
    fn save(&mut self) -> Result<(), CampaignError> {
        Ok(self.session.made(|| self.ledger.save())?)
    }

    /// Notes that the call is complete, when there is room. What was waited for is
    /// reached: the next call begins a new count.
    fn end_call(&mut self) -> Result<(), CampaignError> {
        if matches!(self.over, Some(EndReason::Until { .. })) {
            self.ledger.checkpoint.goal = None;
        }
        Ok(self.session.made(|| self.ledger.end_call())?)
    }

    /// Whether the program is another one now.
    fn is_rebuilt(&mut self) -> bool {
        if self.over.is_none() && self.watch.is_another() {
            self.over = Some(EndReason::Rebuilt);
        }
        matches!(self.over, Some(EndReason::Rebuilt))
    }

    /// Takes the program as it is now: all groups are checked, and those that are still to be
    /// minimized are restarted.
    fn take_build(&mut self) -> Result<(), CampaignError> {
        self.over = None;
        self.session.take_build(&mut self.watch)?;
        self.queue.clear();
        self.taken.clear();
        self.more.clear();
        Ok(())
    }
}
