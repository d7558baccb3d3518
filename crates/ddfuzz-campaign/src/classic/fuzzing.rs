//! The fuzzing of a campaign: workers, and the commits of what they report.

use std::collections::BTreeMap;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

use crossbeam::channel::{self, Receiver, RecvTimeoutError, Sender};

use super::ending::Over;
use super::engine::Engine;
use super::worker::{Chunk, Shared, start_worker};
use crate::bounds::Bounds;
use crate::error::CampaignError;
use crate::orders::{Word, is_of_target, minimize_orders};
use crate::settings::When;
use ddfuzz_exec::ExecError;
use ddfuzz_store::EntryId;

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
