//! Minimizes one group after the other, by the thread beside the examiners.

use std::collections::{HashSet, VecDeque};
use std::time::Duration;

use crossbeam::channel::{Receiver, RecvTimeoutError, Sender};

use super::engine::WatchEngine;
use crate::error::CampaignError;
use crate::minimization_queue::{MinimizerReply, is_done};
use crate::schedule::SlippedInputs;
use crate::settings::When;
use ddfuzz_store::EntryId;

const TICK: Duration = Duration::from_millis(200);

/// Groups that wait to be minimized.
#[derive(Default)]
pub(super) struct MinimizeQueue {
    /// Founders of new groups.
    queue: VecDeque<EntryId>,
    /// The one that the thread works on.
    ordered: Option<EntryId>,
    /// All that were queued in this call.
    taken: HashSet<EntryId>,
    /// Time that was minimized.
    pub(super) spent: Duration,
    /// How many have ended since it was last counted from there.
    done: u64,
    /// The store has no more of those that only wait until there is nothing else to do.
    exhausted: bool,
    /// What minimizations have met.
    met: SlippedInputs,
}

impl MinimizeQueue {
    pub(super) fn enqueue(&mut self, id: EntryId) {
        if self.taken.insert(id.clone()) {
            self.queue.push_back(id);
        }
    }

    /// Something new was filed.
    pub(super) fn look_again(&mut self) {
        self.exhausted = false;
    }

    /// What was begun before counts no more: the program is another one.
    pub(super) fn begin_anew(&mut self) {
        *self = MinimizeQueue {
            spent: self.spent,
            ..MinimizeQueue::default()
        };
    }

    /// Counts those that end from here on.
    pub(super) fn count_from_here(&mut self) {
        self.done = 0;
    }

    /// How many have ended.
    pub(super) fn done(&self) -> u64 {
        self.done
    }

    /// How many wait, the one under way included.
    pub(super) fn waiting(&self) -> u64 {
        self.queue.len() as u64 + u64::from(self.ordered.is_some())
    }
}

impl WatchEngine<'_> {
    /// Queues what an earlier call left to be minimized.
    pub(super) fn enqueue_founders(&mut self) -> Result<(), CampaignError> {
        let variants = self.settings.minimizing.variants;
        for id in self.registry.ledger.pending(variants, false)? {
            if self.is_minimized(&id) {
                self.minimize_queue.enqueue(id);
            }
        }
        Ok(())
    }

    /// Has the next group minimized, while files are watched for. Groups that were only slipped
    /// into, hangs and memory blow-ups get their turn when there is nothing else to do.
    pub(super) fn order_minimization(
        &mut self,
        order: &Sender<EntryId>,
    ) -> Result<(), CampaignError> {
        match self.settings.when {
            When::Inline | When::Worker => self.order_next(order, self.is_idle()),
            When::After | When::Off => Ok(()),
        }
    }

    fn order_next(&mut self, order: &Sender<EntryId>, idle: bool) -> Result<(), CampaignError> {
        if self.minimize_queue.ordered.is_some() || self.session.stopped() {
            return Ok(());
        }
        if self.minimize_queue.queue.is_empty() && idle && !self.minimize_queue.exhausted {
            self.enqueue_rest()?;
        }
        if let Some(id) = self.minimize_queue.queue.pop_front() {
            self.minimize_queue.ordered = Some(id.clone());
            // The receiver is gone only if the thread has panicked, which its silence will say.
            let _ = order.send(id);
        }
        Ok(())
    }

    /// Queues what is minimized when there is nothing else to do, one by one: each may slip into
    /// further groups.
    fn enqueue_rest(&mut self) -> Result<(), CampaignError> {
        let minimizing = &self.settings.minimizing;
        loop {
            let pending = self.registry.ledger.pending(minimizing.variants, true)?;
            let fresh =
                |id: &EntryId| !self.minimize_queue.taken.contains(id) && self.is_minimized(id);
            if let Some(id) = pending.into_iter().find(fresh) {
                self.minimize_queue.enqueue(id);
                return Ok(());
            }
            let mut met = std::mem::take(&mut self.minimize_queue.met);
            let filed = met.file_next(self.session.store, minimizing, &|major| {
                !self.session.is_muted(major)
            });
            if self.session.waits_for_space(&filed) {
                continue;
            }
            self.minimize_queue.met = met;
            if !filed? {
                self.minimize_queue.exhausted = true;
                return Ok(());
            }
        }
    }

    /// Receives the result of the group under way.
    pub(super) fn receive_replies(
        &mut self,
        replies: &Receiver<MinimizerReply>,
    ) -> Result<(), CampaignError> {
        replies
            .try_iter()
            .try_for_each(|reply| self.receive_reply(reply))
    }

    /// Minimizes all that is left to be.
    pub(super) fn minimize_rest(
        &mut self,
        order: &Sender<EntryId>,
        replies: &Receiver<MinimizerReply>,
    ) -> Result<(), CampaignError> {
        loop {
            if self.settings.when != When::Off {
                self.order_next(order, true)?;
            }
            if self.minimize_queue.ordered.is_none() {
                return Ok(());
            }
            match replies.recv_timeout(TICK) {
                Ok(reply) => self.receive_reply(reply)?,
                Err(RecvTimeoutError::Timeout) => self.session.screen.progress(&self.progress()),
                Err(RecvTimeoutError::Disconnected) => return Err(CampaignError::Broken),
            }
        }
    }

    /// Waits for the group under way, whatever becomes of it with a program that is another one.
    pub(super) fn wait_for_minimizer(&mut self, replies: &Receiver<MinimizerReply>) {
        while self.minimize_queue.ordered.is_some() {
            match replies.recv_timeout(TICK) {
                Ok(reply) => drop(self.receive_reply(reply)),
                Err(RecvTimeoutError::Timeout) => self.session.screen.progress(&self.progress()),
                Err(RecvTimeoutError::Disconnected) => return,
            }
        }
    }

    fn receive_reply(&mut self, (id, spent, result): MinimizerReply) -> Result<(), CampaignError> {
        self.minimize_queue.ordered = None;
        self.minimize_queue.spent += spent;
        self.minimize_queue.done += 1;
        self.minimize_queue.look_again();
        if self.session.waits_for_space(&result) {
            self.minimize_queue.queue.push_front(id);
            return Ok(());
        }
        if is_done(result, self.session.stopped())?
            && let Some(view) = self.session.view(&id)?
        {
            self.session.screen.minimized(&view);
        }
        Ok(())
    }
}
