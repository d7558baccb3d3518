//! The loop of a classic campaign: starts the workers, commits what they report (counts runs and
//! stores findings) in the order of the runs, has groups minimized, and decides when the call ends.

use std::collections::{BTreeMap, BTreeSet, HashSet, VecDeque};
use std::sync::Mutex;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use crossbeam::channel::{self, Receiver, RecvTimeoutError, Sender};

use super::inputs::Inputs;
use super::worker::{Chunk, WorkerContext, start_worker};
use crate::minimization_order;
use crate::minimization_queue::{RestBudget, is_slipped};
use crate::{
    CampaignError, CampaignSession, CampaignState, Finding, MinimizerReply, PauseGate, Phase,
    ProgramWatch, Progress, Screen, Settings, SlippedInputs, StopCondition, Stored, Summary, Until,
    When, is_of_target, run_minimizer,
};
use ddfuzz_exec::{ExecError, RefusalReason};
use ddfuzz_model::pool::{TaskPool, Worker};
use ddfuzz_store::{EntryId, Kind, Store, report::EndedBy};

/// Greatest number of chunks (results of 16 runs each) that wait to be committed (counted and
/// stored); when it is reached, the workers pause.
const BACKLOG: usize = 1 << 16;
/// Maximum number of workers that start their targets at the same time; other workers wait for
/// their turn. When the user stops the call of ddfuzz, it waits only for the starts under way.
const STARTS: usize = 32;
/// Longest wait for a report of a worker thread before the progress on the user's screen is
/// updated.
const TICK: Duration = Duration::from_millis(200);

/// Runs one call of ddfuzz for the classic campaign (random inputs, for targets without coverage)
/// with the id `campaign`, in the output directory of `store`. When `stop` turns true, the call
/// saves its state and ends.
///
/// # Errors
/// When the target cannot be run or the output directory cannot be written; everything found before
/// the error is kept.
pub fn run(
    store: &Mutex<Store>,
    campaign: &str,
    settings: &Settings,
    screen: &mut dyn Screen,
    stop: &AtomicBool,
) -> Result<Summary, CampaignError> {
    let mut campaign = CampaignState::open(store, campaign)?;
    let inputs = Inputs::settle(store, &mut campaign.checkpoint, settings)?;
    campaign.checkpoint.begin_count(settings.runs);
    // First, so that a call that is killed while it copies the seeds can be resumed.
    campaign.save()?;
    inputs.store_seeds(store, stop)?;
    let gate = PauseGate::default();
    let engine = ClassicEngine {
        session: CampaignSession::new(store, screen, stop, &gate, settings.session()),
        settings,
        inputs,
        watch: ProgramWatch::of(&settings.minimizing.target)?,
        unstored: 0,
        refusals: BTreeMap::new(),
        end_reason: None,
        first: campaign.checkpoint.next,
        campaign,
        queue: VecDeque::new(),
        sent_to_minimizer: 0,
        queued: HashSet::new(),
        more: BTreeSet::new(),
        spent: Duration::ZERO,
        fuzzed: None,
        rest: None,
        done: 0,
        waiting: 0,
    };
    engine.run()
}

/// Why a classic campaign stops counting runs and storing findings: a condition of `--until` was
/// met, or the program was rebuilt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum EndReason {
    /// A condition of `--until` was met, so the fuzzing has ended.
    Until {
        until: Until,
        /// Number of the first run that is not counted; `None` if a condition on time ended the
        /// fuzzing.
        end: Option<u64>,
    },
    /// The program was rebuilt, so fuzzing starts again with the new build.
    Rebuilt,
}

/// State of one call of ddfuzz for a classic campaign, and its main loop.
struct ClassicEngine<'a> {
    session: CampaignSession<'a>,
    settings: &'a Settings,
    inputs: Inputs,
    watch: ProgramWatch,
    /// Number of findings that were not stored because the disk was full until the time for fuzzing
    /// was over.
    unstored: u64,
    /// Number of runs of this call of ddfuzz that were refused by the way `snapshot` (many runs in
    /// one process) and made in new processes instead, for each reason.
    refusals: BTreeMap<RefusalReason, u64>,
    /// Why no more runs are committed (counted and stored); `None` while fuzzing goes on.
    end_reason: Option<EndReason>,
    campaign: CampaignState<'a>,
    /// Number of the first run of this call of ddfuzz, counted from the start of the campaign.
    first: u64,
    /// Queue of the entries (stored findings) to minimize next, in this order.
    queue: VecDeque<EntryId>,
    /// Number of entries that were sent to the minimizing thread to be minimized, and about which
    /// it has not replied yet.
    sent_to_minimizer: u64,
    /// Entries (stored findings) that were queued for minimization in this call of ddfuzz.
    queued: HashSet<EntryId>,
    /// Major keys (12 hex digits of the hash that identifies a bug) of groups that may have a
    /// further entry, found by fuzzing, whose minimization gives a smaller result than the present
    /// one.
    more: BTreeSet<String>,
    /// Time that this call of ddfuzz has spent on minimization.
    spent: Duration,
    /// How long this call of ddfuzz has fuzzed; `None` until fuzzing has ended.
    fuzzed: Option<Duration>,
    /// Time budgets after fuzzing for the minimization of entries that were found only during other
    /// minimizations: of hangs, of memory blow-ups, and of crashes. `None` until fuzzing has ended.
    rest: Option<RestBudget>,
    /// Number of entries (stored findings) minimized in this call of ddfuzz since fuzzing ended.
    done: u64,
    /// Number of entries (stored findings) that are to be minimized after fuzzing and are not yet
    /// in the queue of entries to minimize next.
    waiting: usize,
}

// The phases of the call.
impl ClassicEngine<'_> {
    fn run(mut self) -> Result<Summary, CampaignError> {
        let fuzzed = self.fuzz_all();
        let fuzzed = self.session.or_stopped(fuzzed, self.fuzzing());
        let saved = self.save();
        let fuzzed = fuzzed?;
        self.session.or_stopped(saved, ())?;
        self.fuzzed = Some(fuzzed);
        self.rest = Some(RestBudget::after(fuzzed, &self.settings.minimizing));
        if self.settings.when != When::Off {
            let minimized = self.minimize_queue().and_then(|()| self.minimize_rest());
            self.session.or_stopped(minimized, ())?;
            for note in self.rest.iter().flat_map(RestBudget::notes) {
                self.session.screen.note(&note);
            }
        }
        if !self.session.interrupted() {
            let ended = self.end_call();
            self.session.or_stopped(ended, ())?;
        }
        let progress = self.progress();
        self.session.show_last(&progress)?;
        let ended = self.ended_by();
        Ok(Summary {
            runs_of_call: self.campaign.checkpoint.next - self.first,
            unstored: self.unstored,
            refusals: std::mem::take(&mut self.refusals).into_iter().collect(),
            ..self.session.summary(&self.campaign, fuzzed, ended)?
        })
    }

    /// Fuzzes until the fuzzing of this call of ddfuzz ends; starts again whenever the program is
    /// rebuilt. Returns the time spent fuzzing.
    fn fuzz_all(&mut self) -> Result<Duration, CampaignError> {
        self.session.begin_build(&self.watch, &mut self.campaign)?;
        loop {
            if self.settings.when != When::Off {
                self.enqueue_founders()?;
            }
            self.check_runs(None);
            if self.end_reason.is_some() {
                return Ok(self.fuzzing());
            }
            let shared = WorkerContext {
                inputs: self.inputs.clone(),
                end: self.campaign.checkpoint.goal.unwrap_or(u64::MAX),
                stop_condition: StopCondition::new(
                    self.session.stop,
                    self.session.end,
                    self.session.gate,
                ),
            };
            match self.fuzz(&shared) {
                Ok(_) if matches!(self.end_reason, Some(EndReason::Rebuilt)) => {}
                Err(error) if is_of_target(&error) && self.is_rebuilt() => {}
                answer => return answer,
            }
            self.end_reason = None;
            self.take_build()?;
        }
    }

    /// Fuzzes one build of the program until the runs or the time are used up, a condition of
    /// `--until` is met, the program is rebuilt, or the user stops. Returns the time spent fuzzing.
    fn fuzz(&mut self, shared: &WorkerContext<'_>) -> Result<Duration, CampaignError> {
        let (order, orders) = channel::unbounded::<EntryId>();
        let (reply, replies) = channel::unbounded::<MinimizerReply>();
        std::thread::scope(|scope| {
            if self.minimizes_meanwhile() {
                let (store, stop) = (self.session.store, self.session.stop);
                let minimizing = &self.settings.minimizing;
                scope.spawn(move || run_minimizer(store, minimizing, stop, &orders, &reply));
            } else {
                drop((orders, reply));
            }
            let done = self.run_workers(shared, &order, &replies);
            drop(order);
            // Fuzzing goes on with the next build.
            if !matches!(self.end_reason, Some(EndReason::Rebuilt)) {
                self.fuzzed = done.as_ref().ok().copied();
            }
            let minimized = self.wait_for_minimizer(&replies);
            let fuzzed = done?;
            minimized?;
            Ok(fuzzed)
        })
    }
}

/// The permit of a worker to start its target; dropping the permit returns it. The channel holds
/// one element for each permit in use.
struct StartPermit<'a>(&'a Receiver<()>);

impl Drop for StartPermit<'_> {
    fn drop(&mut self) {
        let _ = self.0.try_recv();
    }
}

// Commits in the order of the runs.
impl ClassicEngine<'_> {
    /// Runs all worker threads, and commits the runs that they report (counts them and stores their
    /// findings), in the order of the runs, until all workers have ended; returns the time spent
    /// fuzzing. Queued entries are minimized meanwhile, as `--minimize` says.
    fn run_workers(
        &mut self,
        shared: &WorkerContext<'_>,
        order: &Sender<EntryId>,
        replies: &Receiver<MinimizerReply>,
    ) -> Result<Duration, CampaignError> {
        let settings = self.settings;
        let (starting, started) = channel::bounded(STARTS);
        let work = |worker: &Worker<'_, _, Chunk, ExecError>| {
            // Started with the first task: of many workers some may get none before the end.
            let _ = starting.send(());
            let permit = StartPermit(&started);
            let mut task = worker.next_task();
            let target = task.map(|_| start_worker(shared, settings));
            drop(permit);
            let mut target = match target {
                None | Some(Err(ExecError::Abandoned)) => return Ok(()),
                Some(target) => target?,
            };
            while let Some(first) = task {
                worker.report(target.run_chunk(first)?);
                task = worker.next_task();
            }
            Ok(())
        };
        let pool = TaskPool {
            jobs: settings.jobs,
            backlog: BACKLOG,
            tick: TICK,
            goes_on: &|| shared.stop_condition.go_on(),
        };
        let (mut early, mut cut_short) = (BTreeMap::new(), false);
        self.order_minimization(order)?;
        let chunks = shared.chunks(self.campaign.checkpoint.next);
        pool.run(chunks, work, |report| {
            let done = self.take_report(report, &mut early, &mut cut_short, order, replies);
            shared
                .stop_condition
                .break_off_if(self.end_reason.is_some());
            let done = done.and_then(|()| self.order_minimization(order));
            shared.stop_condition.break_off_if(done.is_err());
            done
        })?;
        // What is committed after the deadline was run before it.
        let time = self.settings.time.unwrap_or(Duration::MAX);
        Ok(self.fuzzing().min(time))
    }

    /// Takes a worker's report (`None` if no worker has reported for a while), and commits all
    /// chunks (results of 16 runs each) whose turn has come, in the order of their runs. Then
    /// handles the replies of the minimizing thread (`replies`), sends it further entries
    /// (`order`), updates the screen, saves the state when due, and checks whether fuzzing ends.
    /// `early`: chunks that wait for earlier ones. `cut_short`: set to true at a chunk that the
    /// worker, being stopped, left incomplete; no later chunk is committed.
    fn take_report(
        &mut self,
        report: Option<Result<Chunk, ExecError>>,
        early: &mut BTreeMap<u64, Chunk>,
        cut_short: &mut bool,
        order: &Sender<EntryId>,
        replies: &Receiver<MinimizerReply>,
    ) -> Result<(), CampaignError> {
        match report {
            Some(Ok(chunk)) => {
                self.count_refusals(&chunk);
                early.insert(chunk.first, chunk);
            }
            // The user's Ctrl-C may have reached a starting target, too.
            Some(Err(_)) if self.session.stopped() || self.is_rebuilt() => {}
            Some(Err(error)) => return Err(error.into()),
            None => {}
        }
        while !*cut_short
            && self.end_reason.is_none()
            && let Some(chunk) = early.remove(&self.campaign.checkpoint.next)
        {
            *cut_short = chunk.runs < chunk.planned;
            self.commit(&chunk, order)?;
        }
        for reply in replies.try_iter() {
            self.receive_reply(reply)?;
        }
        self.tick()?;
        self.check_clock();
        Ok(())
    }

    /// Adds the refused runs of a chunk to the counts for each reason: runs that the way `snapshot`
    /// (many runs in one process) could not make, so that new processes made them. Warns the user
    /// if one of its runs differed from the same run in a new process.
    fn count_refusals(&mut self, chunk: &Chunk) {
        for (reason, count) in &chunk.refusals {
            *self.refusals.entry(*reason).or_default() += count;
            if *reason == RefusalReason::Differs {
                self.session.screen.note(
                    "warning: a run by snapshot differed from that of a new process; this worker \
                     forks each run from now on, and has made the runs since its last check again",
                );
            }
        }
    }

    /// Commits a chunk (up to 16 runs) as a whole: stores its findings and counts its runs. If
    /// storing fails, none of its runs is counted, and the next call of ddfuzz repeats them.
    fn commit(&mut self, chunk: &Chunk, order: &Sender<EntryId>) -> Result<(), CampaignError> {
        let seen = (!chunk.findings.is_empty()).then(|| self.campaign.checkpoint.seen.clone());
        let done = self.commit_findings(chunk, order);
        match (&done, seen) {
            // Runs after the one that ends the campaign are not counted.
            (Ok(()), _) => {
                self.campaign.checkpoint.next = match self.end_reason {
                    Some(EndReason::Until { end: Some(end), .. }) => end,
                    _ => chunk.first + chunk.runs,
                }
            }
            (Err(_), Some(seen)) => self.campaign.checkpoint.seen = seen,
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
            if self.end_reason.is_some() {
                break;
            }
            let Some(Stored { id, founds }) = self.commit_finding(finding)? else {
                continue;
            };
            if founds {
                self.session.show_new(&id)?;
            }
            if self.settings.when == When::Off || self.session.is_muted(id.major()) {
                continue;
            }
            if !founds {
                self.more.insert(id.major().to_owned());
            } else if self.enqueue(id) {
                self.order_minimization(order)?;
            }
        }
        Ok(())
    }

    fn commit_finding(&mut self, finding: &Finding) -> Result<Option<Stored>, CampaignError> {
        let groups = |campaign: &CampaignState<'_>| {
            let seen = campaign.checkpoint.seen.get(&Kind::Crash);
            seen.map_or(0, BTreeMap::len)
        };
        let before = groups(&self.campaign);
        let stored = self.session.with_space(|| self.campaign.commit(finding));
        self.unstored += u64::from(stored.is_err() && self.session.disk_wait.is_given_up());
        let stored = stored?;
        if groups(&self.campaign) > before {
            self.check_runs(Some(finding.run + 1));
        }
        Ok(stored)
    }

    fn tick(&mut self) -> Result<(), CampaignError> {
        self.session.screen.seen(&self.campaign.checkpoint.seen);
        self.session.screen.progress(&self.progress());
        let due = self.session.is_save_due();
        if due || self.campaign.is_unsaved() {
            self.save()?;
        }
        match due {
            true => self.session.append_stats(&self.progress()),
            false => Ok(()),
        }
    }

    fn save(&mut self) -> Result<(), CampaignError> {
        Ok(self.session.with_space(|| self.campaign.save())?)
    }

    /// Records in the checkpoint that the call of ddfuzz is complete. If a condition of `--until`
    /// ended it, the next call counts its runs for `--runs` from 0 again.
    fn end_call(&mut self) -> Result<(), CampaignError> {
        if matches!(self.end_reason, Some(EndReason::Until { .. })) {
            self.campaign.checkpoint.goal = None;
        }
        Ok(self.session.with_space(|| self.campaign.end_call())?)
    }

    fn progress(&self) -> Progress {
        let runs = self.campaign.checkpoint.next - self.first;
        let left = (self.queue.len() + self.waiting) as u64 + self.sent_to_minimizer;
        let budget = self.settings.minimizing.budget_time;
        Progress {
            phase: match self.fuzzed {
                Some(_) if left > 0 => Phase::minimizing(self.done, left, budget),
                _ => Phase::Fuzzing,
            },
            minimizing: left,
            minimizer_share: self.session.minimizer_share(self.spent),
            ..(self.session).progress(&self.campaign, runs, self.fuzzing())
        }
    }
}

// Minimization, by the minimizing thread while this call fuzzes, and on this thread afterwards.
impl ClassicEngine<'_> {
    /// Queues an entry (stored finding) for minimization; returns false if it was queued before in
    /// this call of ddfuzz.
    fn enqueue(&mut self, id: EntryId) -> bool {
        let new = self.queued.insert(id.clone());
        if new {
            self.queue.push_back(id);
        }
        new
    }

    /// Queues the entries that earlier calls of ddfuzz have not minimized: founders (first
    /// findings) of groups, and for minimized groups the next smaller input. Leaves out muted
    /// groups.
    fn enqueue_founders(&mut self) -> Result<(), CampaignError> {
        let variants = self.settings.minimizing.variants;
        for id in self.campaign.pending(variants, false)? {
            let major = id.major().to_owned();
            if !self.session.is_muted(&major) && self.enqueue(id) {
                self.more.insert(major);
            }
        }
        Ok(())
    }

    /// Queues the next input found by fuzzing that may give a smaller result than the minimized
    /// input of its group; returns false if there is none.
    fn enqueue_smaller(&mut self) -> Result<bool, CampaignError> {
        if self.more.is_empty() {
            return Ok(false);
        }
        let (reader, failures) = (self.session.reader(), self.campaign.failures()?);
        while let Some(major) = self.more.first() {
            if let Some(id) = minimization_order::smaller_of_runs(&reader, &failures, major)?
                && self.enqueue(id)
            {
                return Ok(true);
            }
            self.more.pop_first();
        }
        Ok(false)
    }

    /// Returns true if a separate thread minimizes groups while this call of ddfuzz fuzzes
    /// (`--minimize inline` or `worker`). The thread that commits results never minimizes during
    /// fuzzing, since the workers' results would have to wait for it.
    fn minimizes_meanwhile(&self) -> bool {
        matches!(self.settings.when, When::Inline | When::Worker)
    }

    /// Sends the queued entries to the minimizing thread, if there is one.
    fn order_minimization(&mut self, order: &Sender<EntryId>) -> Result<(), CampaignError> {
        if !self.minimizes_meanwhile() {
            return Ok(());
        }
        // Which input counts as smaller depends on the results of those before it.
        if self.queue.is_empty() && self.sent_to_minimizer == 0 {
            self.enqueue_smaller()?;
        }
        for id in self.queue.drain(..) {
            self.sent_to_minimizer += 1;
            // The receiver is gone only if the worker failed, which its reply will say.
            let _ = order.send(id);
        }
        Ok(())
    }

    /// Minimizes the queued entries on this thread, when fuzzing has ended.
    fn minimize_queue(&mut self) -> Result<(), CampaignError> {
        while !self.session.stopped()
            && let Some(id) = self.queue.front().cloned()
        {
            let minimizing = &self.settings.minimizing;
            let slipped = is_slipped(&self.session.reader(), &id);
            let how = match &mut self.rest {
                Some(rest) => rest.of(&id, slipped, minimizing),
                None => Some(minimizing.clone()),
            };
            let Some(how) = how else {
                self.queue.pop_front();
                continue;
            };
            let left = (self.queue.len() + self.waiting) as u64;
            let progress = Progress {
                phase: Phase::minimizing(self.done, left, how.budget_time),
                ..self.progress()
            };
            self.session.screen.progress(&progress);
            let since = Instant::now();
            let result = self.session.minimize(&id, &how, &progress);
            self.spent += since.elapsed();
            if let Some(rest) = &mut self.rest {
                rest.spend(&id, slipped, since.elapsed());
            }
            self.queue.pop_front();
            self.done += u64::from(result.is_ok());
            self.take_result(&id, result)?;
        }
        Ok(())
    }

    /// Minimizes, after fuzzing, one entry after the other until no group has an entry to minimize;
    /// each minimization may find further groups. Last, stores and minimizes smaller inputs that
    /// were met by chance during minimizations. Which entry is next does not depend on what an
    /// earlier call of ddfuzz had queued.
    fn minimize_rest(&mut self) -> Result<(), CampaignError> {
        let (store, minimizing) = (self.session.store, &self.settings.minimizing);
        let mut slipped = SlippedInputs::default();
        while !self.session.stopped() {
            if self.watch.is_another() {
                self.take_build()?;
            }
            let mut pending = self.campaign.pending(minimizing.variants, true)?;
            pending.retain(|id| !self.session.is_muted(id.major()) && !self.queued.contains(id));
            self.waiting = pending.len().saturating_sub(1);
            if let Some(id) = pending.into_iter().next() {
                self.enqueue(id);
                self.minimize_queue()?;
                continue;
            }
            let filed =
                slipped.file_next(store, minimizing, &|major| !self.session.is_muted(major));
            if self.session.waits_for_space(&filed) {
                slipped = SlippedInputs::default();
            } else if !self.session.or_stopped(filed, false)? {
                return Ok(());
            }
        }
        Ok(())
    }

    /// Handles the result of the minimization of an entry: shows the minimized group to the user;
    /// if the disk was full, waits for space and queues the entry again. Returns an error if the
    /// minimization failed for another reason and was not interrupted.
    fn take_result(
        &mut self,
        id: &EntryId,
        result: Result<(), CampaignError>,
    ) -> Result<(), CampaignError> {
        if self.session.waits_for_space(&result) {
            self.queue.push_front(id.clone());
            return Ok(());
        }
        self.session.show_minimized(id, result).map(drop)
    }

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
        self.sent_to_minimizer -= 1;
        self.spent += spent;
        self.done += u64::from(self.fuzzed.is_some() && result.is_ok());
        self.take_result(&id, result)
    }
}

// When the call ends.
impl ClassicEngine<'_> {
    /// Returns the time that this call of ddfuzz has spent fuzzing, without the time in which the
    /// disk was full.
    fn fuzzing(&self) -> Duration {
        self.fuzzed.unwrap_or_else(|| self.session.elapsed())
    }

    /// Counts the new groups, and ends the fuzzing if a condition of `--until` on their number is
    /// met. `end`: number of the first run that does not count if the fuzzing ends now; `None` at
    /// the start of a call of ddfuzz.
    fn check_runs(&mut self, end: Option<u64>) {
        let fuzzed = self.fuzzing();
        self.session.count_new(&self.campaign, fuzzed);
        self.end_if_reached(true, end);
    }

    /// Ends the fuzzing if a condition of `--until` about the time since the last new group is met,
    /// or if the program has changed.
    fn check_clock(&mut self) {
        self.end_if_reached(false, None);
        if self.end_reason.is_none() && self.watch.has_changed() {
            self.end_reason = Some(EndReason::Rebuilt);
        }
    }

    fn end_if_reached(&mut self, of_runs: bool, end: Option<u64>) {
        let fuzzed = self.fuzzing();
        let reached = self.session.reached(of_runs, fuzzed);
        let reached = reached.map(|until| EndReason::Until { until, end });
        self.end_reason = self.end_reason.or(reached);
    }

    fn ended_by(&self) -> (EndedBy, Option<Until>) {
        let checkpoint = &self.campaign.checkpoint;
        let made_all = checkpoint.goal.is_none_or(|goal| checkpoint.next >= goal);
        match self.end_reason {
            _ if self.session.interrupted() => (EndedBy::Interrupted, None),
            Some(EndReason::Until { until, .. }) => (EndedBy::Until, Some(until)),
            _ if self.settings.runs.is_some() && made_all => (EndedBy::Runs, None),
            _ if self.settings.time.is_none() && checkpoint.goal.is_none() => (EndedBy::Runs, None),
            _ => (EndedBy::Time, None),
        }
    }

    fn is_rebuilt(&mut self) -> bool {
        if self.end_reason.is_none() && self.watch.is_another() {
            self.end_reason = Some(EndReason::Rebuilt);
        }
        matches!(self.end_reason, Some(EndReason::Rebuilt))
    }

    /// Switches to the new build of the program: checks all groups with it, and empties the queue
    /// of entries to minimize; minimizations that are not complete start again.
    fn take_build(&mut self) -> Result<(), CampaignError> {
        self.session
            .take_build(&mut self.watch, &mut self.campaign)?;
        self.queue.clear();
        self.queued.clear();
        self.more.clear();
        Ok(())
    }
}
