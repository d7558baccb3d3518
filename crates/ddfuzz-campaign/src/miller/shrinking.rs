//! What becomes of the groups of a study: options and inputs are minimized.

use std::collections::HashSet;
use std::time::{Duration, Instant};

use super::engine::Engine;
use super::options::minimize_options;
use crate::error::CampaignError;
use crate::ledger::lock;
use crate::minimizing::Minimizing;
use crate::orders::{is_done, is_of_target, minimize_entry};
use crate::schedule::{Met, file_met};
use crate::screen::Phase;
use ddfuzz_minimize::MinimizeError;
use ddfuzz_store::report::GroupView;
use ddfuzz_store::{Entry, EntryId};

/// What several minimizations may take together of the time of the runs: one of so many parts.
const SHARE: u32 = 5;
/// The least that they may.
const LEAST: Duration = Duration::from_secs(10);

impl Engine<'_> {
    /// Minimizes the groups that runs have founded.
    pub(super) fn minimize_founders(&mut self) -> Result<(), CampaignError> {
        self.minimize_pending(false, None)
    }

    /// Minimizes what else there is: groups that were only slipped into, one by one, for each may
    /// slip into further ones, and hangs and memory blow-ups. Where the study has a time and not a
    /// number of runs, all of them together have the time of one, or a fifth of the runs' time.
    pub(super) fn minimize_others(&mut self) -> Result<(), CampaignError> {
        self.minimize_pending(true, self.budget_of_all())
    }

    /// What several minimizations may take together, where the study has a time.
    pub(super) fn budget_of_all(&self) -> Option<Duration> {
        let minimizing = &self.settings.minimizing;
        let budget = minimizing
            .budget_time
            .filter(|_| self.settings.time.is_some())?;
        Some(of_all(budget, self.fuzzed, minimizing.hurried))
    }

    fn minimize_pending(
        &mut self,
        last: bool,
        budget: Option<Duration>,
    ) -> Result<(), CampaignError> {
        let mut taken = HashSet::new();
        let began = Instant::now();
        while !self.stopped() && budget.is_none_or(|budget| began.elapsed() < budget) {
            let variants = self.settings.minimizing.variants;
            let mut pending = self.ledger.pending(variants, last)?;
            pending.retain(|id| {
                !self.muted(id.major()) && !taken.contains(id) && !self.gone.contains(id)
            });
            let Some(id) = pending.first().cloned() else {
                break;
            };
            let left = budget.map(|budget| budget.saturating_sub(began.elapsed()));
            let each = least(self.settings.minimizing.budget_time, left);
            self.waiting = pending.len() as u64;
            self.phase = Phase::Minimizing {
                done: taken.len() as u64,
                of: (taken.len() + pending.len()) as u64,
                each_ms: each.map(|each| each.as_millis() as u64),
            };
            taken.insert(id.clone());
            self.minimize(&id, each)?;
        }
        self.waiting = 0;
        Ok(())
    }

    /// Minimizes what searches have met that is smaller than the reproducer of its group, as long
    /// as `budget` lasts.
    pub(super) fn minimize_smaller(
        &mut self,
        met: &mut Met,
        budget: Option<Duration>,
    ) -> Result<(), CampaignError> {
        let began = Instant::now();
        while !self.stopped() && budget.is_none_or(|budget| began.elapsed() < budget) {
            let reader = lock(self.store).reader().clone();
            let Some((entry, slip)) = met.next(&reader, &|major| !self.muted(major))? else {
                return Ok(());
            };
            if entry.crash.of.is_none() || self.gone.contains(&entry.id) {
                continue;
            }
            let filed = file_met(self.store, &self.settings.minimizing, &entry, &slip);
            if self.unless_gone(&entry.id, filed)? == Some(true) {
                let left = budget.map(|budget| budget.saturating_sub(began.elapsed()));
                self.minimize_pending(true, left)?;
            }
        }
        Ok(())
    }

    /// Minimizes one group within the time `each`, when there is room. What is of no utility is
    /// left to the campaign on its target.
    fn minimize(&mut self, id: &EntryId, each: Option<Duration>) -> Result<(), CampaignError> {
        if (self.entry(id)?).is_none_or(|entry| entry.crash.of.is_none()) {
            return Ok(());
        }
        loop {
            let result = self.minimize_once(id, each);
            let Engine { room, screen, .. } = self;
            if room.is_again(&result, &mut |text: &str| screen.note(text)) {
                continue;
            }
            let done = is_done(result, self.stopped());
            if self.unless_gone(id, done)? == Some(true) {
                let reader = lock(self.store).reader().clone();
                if let Some(view) = GroupView::of(&reader, id)? {
                    self.screen.minimized(&view);
                }
                self.replay(id)?;
            }
            return Ok(());
        }
    }

    /// What came of an entry; `None` where its program cannot be run any more. That is said, once,
    /// and the others go on.
    pub(super) fn unless_gone<T>(
        &mut self,
        id: &EntryId,
        result: Result<T, CampaignError>,
    ) -> Result<Option<T>, CampaignError> {
        match result {
            Err(error) if is_of_target(&error) => {
                if self.gone.insert(id.clone()) && !self.stopped() {
                    let major = id.major();
                    let text = format!("group {major} is not minimized: {error}");
                    self.screen.note(&text);
                }
                Ok(None)
            }
            other => other.map(Some),
        }
    }

    fn minimize_once(
        &mut self,
        id: &EntryId,
        budget_time: Option<Duration>,
    ) -> Result<(), CampaignError> {
        self.shed_options(id)?;
        let (began, progress) = (self.began, self.progress());
        let screen = &mut *self.screen;
        let watch = &mut || screen.progress(&progress.later(began.elapsed()));
        let minimizing = Minimizing {
            budget_time,
            ..self.settings.minimizing.clone()
        };
        minimize_entry(self.store, &minimizing, self.stop, id, watch)
    }

    /// Has the options minimized first, unless the input's turn has come already.
    fn shed_options(&mut self, id: &EntryId) -> Result<(), CampaignError> {
        let entry = self.entry(id)?;
        let Some(entry) = entry.filter(|entry| !entry.log().exists()) else {
            return Ok(());
        };
        let log = lock(self.store).options_log(id)?;
        let minimizing = &self.settings.minimizing;
        let shed = match minimize_options(minimizing, &entry, &log, self.stop) {
            // What does not come again by a plain execve keeps its options.
            Err(CampaignError::Minimize(MinimizeError::NotFailing { .. })) => None,
            answer => answer?,
        };
        if let Some(subject) = shed
            && entry.crash.of.as_deref() != Some(&subject)
        {
            lock(self.store).set_subject(id, &subject)?;
        }
        Ok(())
    }

    pub(super) fn entry(&self, id: &EntryId) -> Result<Option<Entry>, CampaignError> {
        Ok(lock(self.store).reader().entry(id)?)
    }
}

/// What several minimizations may take together where one may take `budget`: behind a short study
/// that is `hurried`, no longer than a share of it.
fn of_all(budget: Duration, fuzzed: Duration, hurried: bool) -> Duration {
    match hurried {
        true => budget.min((fuzzed / SHARE).max(LEAST)),
        false => budget,
    }
}

/// The shorter of two times, where there are any.
fn least(one: Option<Duration>, other: Option<Duration>) -> Option<Duration> {
    one.into_iter().chain(other).min()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_minimized_last_has_a_share_of_the_time_and_each_what_is_left_of_it() {
        let seconds = Duration::from_secs;
        assert_eq!(of_all(seconds(60), seconds(100), true), seconds(20));
        assert_eq!(of_all(seconds(60), seconds(6), true), LEAST);
        assert_eq!(of_all(seconds(60), seconds(3600), true), seconds(60));
        assert_eq!(of_all(seconds(60), seconds(6), false), seconds(60));
        assert_eq!(least(Some(seconds(60)), Some(seconds(4))), Some(seconds(4)));
        assert_eq!(least(Some(seconds(60)), None), Some(seconds(60)));
        assert_eq!(least(None, None), None);
    }
}
