//! Minimizes the groups of a study: first the options of the failing call, then its input; at last
//! runs each reproducer again.

use std::collections::{BTreeMap, HashSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use super::engine::StudyEngine;
use crate::campaign_state::lock;
use crate::error::CampaignError;
use crate::minimization_queue::{is_done, is_of_target, minimize_entry};
use crate::minimizing::Minimizing;
use crate::schedule::{SlippedInputs, file_slip};
use crate::screen::Phase;
use ddfuzz_delta::Ddmin;
use ddfuzz_exec::{ExecError, Target, TargetRecord, Way};
use ddfuzz_minimize::log::{CallRecord, ContentHash, OsText, Part};
use ddfuzz_minimize::{
    BoxedOracle, Call, CallOracle, Held, Journal, MinimizeError, Oracle, OracleOfCall, Workers,
    minimize_by_workers,
};
use ddfuzz_store::{Entry, EntryId, Kind, Replayed};
use ddfuzz_triage::{Crash, Found, Quick, Subject, Triager};

/// What several minimizations may take together of the time of the runs: one of so many parts.
const SHARE: u32 = 5;
/// The least that they may.
const LEAST: Duration = Duration::from_secs(10);

impl StudyEngine<'_> {
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
        while !self.session.stopped() && budget.is_none_or(|budget| began.elapsed() < budget) {
            let variants = self.settings.minimizing.variants;
            let mut pending = self.ledger.pending(variants, last)?;
            pending.retain(|id| {
                !self.session.is_muted(id.major())
                    && !taken.contains(id)
                    && !self.not_started.contains(id)
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
        met: &mut SlippedInputs,
        budget: Option<Duration>,
    ) -> Result<(), CampaignError> {
        let began = Instant::now();
        while !self.session.stopped() && budget.is_none_or(|budget| began.elapsed() < budget) {
            let reader = self.session.reader();
            let Some((entry, slip)) = met.next(&reader, &|major| !self.session.is_muted(major))?
            else {
                return Ok(());
            };
            if entry.crash.of.is_none() || self.not_started.contains(&entry.id) {
                continue;
            }
            let filed = file_slip(self.session.store, &self.settings.minimizing, &entry, &slip);
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
            if self.session.waits_for_space(&result) {
                continue;
            }
            let done = is_done(result, self.session.stopped());
            if self.unless_gone(id, done)? == Some(true) {
                if let Some(view) = self.session.view(id)? {
                    self.session.screen.minimized(&view);
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
                if self.not_started.insert(id.clone()) && !self.session.stopped() {
                    let major = id.major();
                    let text = format!("group {major} is not minimized: {error}");
                    self.session.screen.note(&text);
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
        let (began, progress) = (self.session.began, self.progress());
        let screen = &mut *self.session.screen;
        let watch = &mut || screen.progress(&progress.later(began.elapsed()));
        let minimizing = Minimizing {
            budget_time,
            ..self.settings.minimizing.clone()
        };
        minimize_entry(
            self.session.store,
            &minimizing,
            self.session.stop,
            id,
            watch,
        )
    }

    /// Has the options minimized first, unless the input's turn has come already.
    fn shed_options(&mut self, id: &EntryId) -> Result<(), CampaignError> {
        let entry = self.entry(id)?;
        let Some(entry) = entry.filter(|entry| !entry.log().exists()) else {
            return Ok(());
        };
        let log = lock(self.session.store).options_log(id)?;
        let minimizing = &self.settings.minimizing;
        let shed = match minimize_options(minimizing, &entry, &log, self.session.stop) {
            // What does not come again by a plain execve keeps its options.
            Err(CampaignError::Minimize(MinimizeError::NotFailing { .. })) => None,
            answer => answer?,
        };
        if let Some(subject) = shed
            && entry.crash.of.as_deref() != Some(&subject)
        {
            lock(self.session.store).set_subject(id, &subject)?;
        }
        Ok(())
    }

    pub(super) fn entry(&self, id: &EntryId) -> Result<Option<Entry>, CampaignError> {
        Ok(lock(self.session.store).reader().entry(id)?)
    }
}

/// What several minimizations may take together where one may take `budget`: after a short study
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

/// Minimizes the arguments of an entry's call, or continues the log of that: gives what is left
/// of them; `None` where there are none that may go.
pub(super) fn minimize_options(
    minimizing: &Minimizing,
    entry: &Entry,
    log: &std::path::Path,
    stop: &AtomicBool,
) -> Result<Option<Subject>, CampaignError> {
    let Some(subject) = &entry.crash.of else {
        return Ok(None);
    };
    // Keys are equal by every way of execution, and a server would have to be started for each
    // candidate.
    let of_entry = Minimizing {
        way: Way::Command,
        search: Ddmin::NAME.to_owned(),
        ..minimizing.of(&entry.crash)
    };
    let call = Call::new(of_entry.target.clone(), Part::Args, 0);
    if call.text().is_empty() {
        return Ok(None);
    }
    let input = entry.original_bytes()?;
    let mut start = of_entry.start_line(call.text(), &entry.crash);
    start.call = Some(CallRecord {
        part: Part::Args,
        at: 0,
        input_blake3: ContentHash::of(&input),
    });
    let original = std::path::absolute(entry.original()).ok();
    start.input = original.map(|path| OsText(path.into()));
    let mut journal = Journal::resume(log, start).map_err(MinimizeError::from)?;
    let held = Held::from(&entry.crash);
    let oracle = || -> BoxedOracle<'_> {
        let (base, held) = (of_entry.clone(), held.clone());
        let make: OracleOfCall = Box::new(move |target: Target| {
            let of_call = Minimizing {
                target,
                ..base.clone()
            };
            let oracle = of_call.oracle(held.clone())?;
            Ok(Box::new(oracle) as Box<dyn Oracle + Send>)
        });
        Box::new(CallOracle::new(call.clone(), input.clone(), make))
    };
    let make = || Ok(oracle());
    let workers = Workers::new(oracle(), &make, minimizing.jobs);
    let mut options = of_entry.options(stop);
    let minimized = minimize_by_workers(call.text(), workers, &mut journal, &mut options)?;
    let left = call.target(&minimized.text);
    Ok(left.map(|target| Subject {
        target: TargetRecord::new(&target, subject.target.way),
        ..(**subject).clone()
    }))
}

impl StudyEngine<'_> {
    /// Runs the reproducer again, and notes with the utility how often it fails.
    pub(super) fn replay(&mut self, id: &EntryId) -> Result<(), CampaignError> {
        let Some(entry) = self.entry(id)? else {
            return Ok(());
        };
        let Some(subject) = &entry.crash.of else {
            return Ok(());
        };
        let replayed = self.replayed(&entry);
        // Who has stopped meanwhile gets it from the call that continues.
        let Some(Some(replayed)) = self.unless_gone(id, replayed)? else {
            return Ok(());
        };
        let (kind, major) = (id.kind(), id.major());
        (self.state()).note_replayed(&subject.utility, kind, major, replayed);
        self.save()
    }

    /// The same with what a call that was killed has minimized and not run again.
    pub(super) fn replay_rest(&mut self) -> Result<(), CampaignError> {
        for id in self.not_replayed()? {
            if !self.session.stopped() && !self.not_started.contains(&id) {
                self.replay(&id)?;
            }
        }
        Ok(())
    }

    /// The least reproducer of each group of this study without a rate.
    fn not_replayed(&mut self) -> Result<Vec<EntryId>, CampaignError> {
        let reader = self.session.reader();
        let mut least: BTreeMap<(Kind, String, String), (u64, EntryId)> = BTreeMap::new();
        for kind in Kind::ALL {
            for group in reader.groups(kind)? {
                let major = group.record.major.short();
                for entry in reader.entries(kind, &major)? {
                    let (Some(subject), Some(minimized)) = (&entry.crash.of, &entry.minimized)
                    else {
                        continue;
                    };
                    let slipped = matches!(entry.crash.found, Some(Found::Slip { .. }));
                    let utility = &subject.utility;
                    if self.session.is_muted(&major)
                        || !(self.state()).lacks_rate(utility, kind, &major, slipped)
                    {
                        continue;
                    }
                    let rank = (minimized.size_after, entry.id.clone());
                    let held = least.entry((kind, major.clone(), utility.clone()));
                    let held = held.or_insert_with(|| rank.clone());
                    *held = rank.min(held.clone());
                }
            }
        }
        Ok(least.into_values().map(|(_, id)| id).collect())
    }

    fn replayed(&self, entry: &Entry) -> Result<Option<Replayed>, CampaignError> {
        let minimizing = self.settings.minimizing.of(&entry.crash);
        let (target, way) = (&minimizing.target, minimizing.way);
        let input = entry.reproducer_bytes()?;
        let tries = self.settings.replays;
        let stop = self.session.stop;
        Ok(replay(target, way, &input, (&entry.crash, tries), stop)?)
    }
}

/// Runs `input` by plain `execve` with random addresses, `tries` times; where some of them do not
/// end in the group of `crash`, as often without. A hang may stand elsewhere each time. `None`
/// where `stop` turns true meanwhile.
fn replay(
    target: &Target,
    way: Way,
    input: &[u8],
    (crash, tries): (&Crash, u32),
    stop: &AtomicBool,
) -> Result<Option<Replayed>, ExecError> {
    let mut triager = Triager::of_target(target, way)?;
    let mut hits_of = |random: bool| {
        let mut hits = 0;
        for _ in 0..tries {
            if stop.load(Ordering::Relaxed) {
                return Ok(None);
            }
            let is_it = match triager.key_at(input, random)? {
                Quick::Crash { class, .. } if Kind::of_class(&class) == Kind::Hang => {
                    class == crash.class
                }
                Quick::Crash { major, .. } => major == crash.keys.major,
                Quick::Ended(_) => false,
            };
            hits += u32::from(is_it);
        }
        Ok::<Option<u32>, ExecError>(Some(hits))
    };
    let Some(hits) = hits_of(true)? else {
        return Ok(None);
    };
    let fixed_hits = match hits < tries {
        true => hits_of(false)?,
        false => None,
    };
    // All of what is asked for, or nothing.
    let all = hits == tries || fixed_hits.is_some();
    Ok(all.then_some(Replayed {
        hits,
        tries,
        fixed_hits,
    }))
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
