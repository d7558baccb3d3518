//! The groups that one stage minimizes, and which of them is next.

use std::collections::HashSet;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use super::account::{Account, CREDIT};
use super::work::{Ending, Work};
use crate::desk::Desk;
use crate::error::CampaignError;
use crate::ledger::lock;
use crate::minimizing::Minimizing;
use ddfuzz_store::{EntryId, Kind};

/// So many are begun at a time at most, for each has processes of its own. More than one, so that
/// a hard group does not keep easy ones waiting.
const MOST: usize = 4;
/// Between two questions for work where there was none.
const ASKED_EVERY: Duration = Duration::from_millis(50);
/// The same where only groups wait that were given back.
const ASKED_AGAIN: Duration = Duration::from_secs(5);
/// What failed (the target is being rebuilt, the disk is full) is tried again after this time.
const FAILED_FOR: Duration = Duration::from_secs(10);

/// The works of one stage.
pub(super) struct Works<D: Desk + 'static> {
    desk: Arc<Mutex<D>>,
    works: Vec<Work>,
    /// Those that have had their credit in this process.
    credited: HashSet<EntryId>,
    /// The desk had nothing when it was last asked.
    in_vain: bool,
    /// Nothing is asked for until then; in time since the beginning.
    asks_from: Duration,
    /// Nothing is begun or gone on with until then.
    rests_until: Duration,
}

impl<D: Desk + 'static> Works<D> {
    pub(super) fn new(desk: Arc<Mutex<D>>) -> Works<D> {
        Works {
            desk,
            works: Vec::new(),
            credited: HashSet::new(),
            in_vain: false,
            asks_from: Duration::ZERO,
            rests_until: Duration::ZERO,
        }
    }

    /// A group was handed in: it is asked for at once.
    pub(super) fn expect(&mut self) {
        self.asks_from = Duration::ZERO;
        self.in_vain = false;
    }

    /// Whether there is nothing to work on, as far as the desk was asked.
    pub(super) fn is_idle(&self) -> bool {
        self.works.is_empty() && self.in_vain
    }

    /// Whether no group is begun.
    pub(super) fn is_empty(&self) -> bool {
        self.works.is_empty()
    }

    /// Whether something failed just now.
    pub(super) fn is_resting(&self, now: Duration) -> bool {
        now < self.rests_until
    }

    /// Works for one slice, if the account allows one; gives how a group ended, if one did. `now`:
    /// the time since the beginning.
    pub(super) fn go_on(
        &mut self,
        now: Duration,
        account: &mut Account,
        minimizing: &Minimizing,
    ) -> Result<Option<Ending>, CampaignError> {
        if self.is_resting(now) {
            return Ok(None);
        }
        let began = Instant::now();
        let done = self.slice(now, account, minimizing);
        if done.is_err() {
            self.rests_until = now + began.elapsed() + FAILED_FOR;
        }
        done
    }

    fn slice(
        &mut self,
        now: Duration,
        account: &mut Account,
        minimizing: &Minimizing,
    ) -> Result<Option<Ending>, CampaignError> {
        let young = |work: &Work| !work.credit.is_zero();
        if now >= self.asks_from && !self.works.iter().any(young) && account.slice(CREDIT).is_some()
        {
            self.claim(now, minimizing)?;
        }
        // A new group first, a hang last; else the one that had the least.
        let order = |work: &&mut Work| (is_slow(&work.id), work.credit.is_zero(), work.spent);
        let Some(work) = self.works.iter_mut().min_by_key(order) else {
            return Ok(None);
        };
        let hangs = is_slow(&work.id);
        let slice = match hangs {
            true => account.slice_for_hangs(),
            false => account.slice(work.credit),
        };
        let Some(slice) = slice else {
            return Ok(None);
        };
        let began = Instant::now();
        let outcome = work.go_on(slice);
        let taken = began.elapsed();
        work.spend(taken);
        match hangs {
            true => account.spend_on_hangs(taken),
            false => account.spend(taken),
        }
        let id = work.id.clone();
        let Some(outcome) = outcome else {
            return Ok(None);
        };
        self.give_back(&id, outcome.is_ok())?;
        // It may have slipped into other groups.
        self.expect();
        outcome.map(Some)
    }

    /// Takes over one more group. Where there are enough already, only for one that is new here,
    /// in place of the one that had the most.
    fn claim(&mut self, now: Duration, minimizing: &Minimizing) -> Result<(), CampaignError> {
        self.asks_from = now + ASKED_EVERY;
        let claimed = lock(&self.desk).claim()?;
        self.in_vain = claimed.is_none();
        let Some(id) = claimed else {
            return Ok(());
        };
        let new = !self.credited.contains(&id);
        if self.works.len() >= MOST {
            if !new {
                self.asks_from = now + ASKED_AGAIN;
                return Ok(lock(&self.desk).give_back(&id, false, Duration::ZERO)?);
            }
            let most = self.works.iter().max_by_key(|work| work.spent);
            if let Some(most) = most.map(|work| work.id.clone()) {
                self.give_back(&most, false)?;
            }
        }
        // The runs of a hang would use up a credit for nothing.
        let credited = new && !is_slow(&id);
        let work = Work::new(
            id.clone(),
            credited,
            Arc::clone(&self.desk),
            minimizing.clone(),
        );
        match work {
            Ok(work) => {
                self.credited.insert(id);
                self.works.push(work);
                Ok(())
            }
            Err(source) => {
                lock(&self.desk).give_back(&id, false, Duration::ZERO)?;
                Err(CampaignError::NoThread { source })
            }
        }
    }

    /// Ends the work on a group, and gives it back.
    fn give_back(&mut self, id: &EntryId, ended: bool) -> Result<(), CampaignError> {
        let Some(at) = self.works.iter().position(|work| work.id == *id) else {
            return Ok(());
        };
        let work = self.works.swap_remove(at);
        let spent = work.spent;
        // First: dropping it may still write.
        drop(work);
        Ok(lock(&self.desk).give_back(id, ended, spent)?)
    }
}

/// Whether each run that fails takes all the time, or memory, that it may.
fn is_slow(id: &EntryId) -> bool {
    matches!(id.kind(), Kind::Hang | Kind::Oom)
}

impl<D: Desk + 'static> Drop for Works<D> {
    fn drop(&mut self) {
        while let Some(work) = self.works.first() {
            let id = work.id.clone();
            let _ = self.give_back(&id, false);
        }
    }
}
