//! Minimizes one group after the other, by the thread beside the examiners.

use std::collections::{HashSet, VecDeque};
use std::time::Duration;

use crossbeam::channel::{Receiver, RecvTimeoutError, Sender};

use super::engine::Engine;
use crate::error::CampaignError;
use crate::orders::{Word, is_done};
use crate::schedule::Met;
use crate::settings::When;
use ddfuzz_store::EntryId;

const TICK: Duration = Duration::from_millis(200);

/// Groups that wait to be minimized.
#[derive(Default)]
pub(super) struct Shrinking {
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
    met: Met,
}

impl Shrinking {
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
        *self = Shrinking {
            spent: self.spent,
            ..Shrinking::default()
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

impl Engine<'_> {
    /// Queues what an earlier call left to be minimized.
    pub(super) fn enqueue_founders(&mut self) -> Result<(), CampaignError> {
        let variants = self.settings.minimizing.variants;
        for id in self.books.ledger.pending(variants, false)? {
            if self.is_minimized(&id) {
                self.shrinking.enqueue(id);
            }
        }
        Ok(())
    }

    /// Has the next group minimized, while files are watched for. Groups that were only slipped
    /// into, hangs and memory blow-ups get their turn when there is nothing else to do.
    pub(super) fn give_out(&mut self, order: &Sender<EntryId>) -> Result<(), CampaignError> {
        match self.settings.when {
            When::Inline | When::Worker => self.order_next(order, self.is_idle()),
            When::After | When::Off => Ok(()),
        }
    }

    fn order_next(&mut self, order: &Sender<EntryId>, idle: bool) -> Result<(), CampaignError> {
        if self.shrinking.ordered.is_some() || self.stopped() {
            return Ok(());
        }
        if self.shrinking.queue.is_empty() && idle && !self.shrinking.exhausted {
            self.enqueue_rest()?;
        }
        if let Some(id) = self.shrinking.queue.pop_front() {
            self.shrinking.ordered = Some(id.clone());
            // Nobody listens only if the thread has panicked, which its silence will say.
            let _ = order.send(id);
        }
        Ok(())
    }

    /// Queues what is minimized when there is nothing else to do, one by one: each may slip into
    /// further groups.
    fn enqueue_rest(&mut self) -> Result<(), CampaignError> {
        let minimizing = &self.settings.minimizing;
        loop {
            let pending = self.books.ledger.pending(minimizing.variants, true)?;
            let fresh = |id: &EntryId| !self.shrinking.taken.contains(id) && self.is_minimized(id);
            if let Some(id) = pending.into_iter().find(fresh) {
                self.shrinking.enqueue(id);
                return Ok(());
            }
            let mut met = std::mem::take(&mut self.shrinking.met);
            let filed = met.file_next(self.store, minimizing, &|major| !self.is_muted(major));
            if self.waits_for_room(&filed) {
                continue;
            }
            self.shrinking.met = met;
            if !filed? {
                self.shrinking.exhausted = true;
                return Ok(());
            }
        }
    }

    /// Hears what has become of the group under way.
    pub(super) fn hear_words(&mut self, words: &Receiver<Word>) -> Result<(), CampaignError> {
        words.try_iter().try_for_each(|word| self.hear_word(word))
    }

    /// Minimizes all that is left to be.
    pub(super) fn minimize_rest(
        &mut self,
        order: &Sender<EntryId>,
        words: &Receiver<Word>,
    ) -> Result<(), CampaignError> {
        loop {
            if self.settings.when != When::Off {
                self.order_next(order, true)?;
            }
            if self.shrinking.ordered.is_none() {
                return Ok(());
            }
            match words.recv_timeout(TICK) {
                Ok(word) => self.hear_word(word)?,
                Err(RecvTimeoutError::Timeout) => self.screen.progress(&self.progress()),
                Err(RecvTimeoutError::Disconnected) => return Err(CampaignError::Broken),
            }
        }
    }

    /// Waits for the group under way, whatever becomes of it with a program that is another one.
    pub(super) fn hear_out(&mut self, words: &Receiver<Word>) {
        while self.shrinking.ordered.is_some() {
            match words.recv_timeout(TICK) {
                Ok(word) => drop(self.hear_word(word)),
                Err(RecvTimeoutError::Timeout) => self.screen.progress(&self.progress()),
                Err(RecvTimeoutError::Disconnected) => return,
            }
        }
    }

    fn hear_word(&mut self, (id, spent, result): Word) -> Result<(), CampaignError> {
        self.shrinking.ordered = None;
        self.shrinking.spent += spent;
        self.shrinking.done += 1;
        self.shrinking.look_again();
        if self.waits_for_room(&result) {
            self.shrinking.queue.push_front(id);
            return Ok(());
        }
        if is_done(result, self.stopped())?
            && let Some(view) = self.view(&id)?
        {
            self.screen.minimized(&view);
        }
        Ok(())
    }

    /// Pauses where a minimization has failed for want of room. Whether it is to go on.
    fn waits_for_room<T>(&mut self, result: &Result<T, CampaignError>) -> bool {
        let Engine { room, screen, .. } = self;
        room.is_again(result, &mut |text: &str| screen.note(text))
    }
}
