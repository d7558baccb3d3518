//! Minimizes the groups of a study: first the options of the failing call, then the input.
//! Afterwards runs each reproducer again to measure how often it fails.

use std::collections::{BTreeMap, HashSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use super::engine::StudyEngine;
use crate::{
    CampaignError, Minimizing, Phase, SlippedInputs, is_of_target, lock,
    minimization_order::file_slip,
};
use ddfuzz_delta::Ddmin;
use ddfuzz_exec::{ExecError, Target, TargetRecord, Way};
use ddfuzz_minimize::log::{CallRecord, ContentHash, LogError, OsText, Part};
use ddfuzz_minimize::{
    BoxedOracle, Call, CallOracle, HeldCrash, Journal, MinimizeError, Oracle, OracleOfCall,
    Workers, minimize_by_workers,
};
use ddfuzz_store::{Entry, EntryId, Kind, Replayed};
use ddfuzz_triage::{Crash, Found, Quick, Subject, Triager};

/// In a hurried study (one in which the user has not set a time limit for each entry), all
/// minimizations after the runs together get at most the time of the runs divided by this number.
const RUNNING_DIVISOR: u32 = 5;
/// In a hurried study (one in which the user has not set a time limit for each entry), all
/// minimizations after the runs together get at least this time, but not more than the time limit
/// of a single minimization.
const LEAST: Duration = Duration::from_secs(10);

impl StudyEngine<'_> {
    /// Minimizes entries of groups of crashes that the study's runs have found: of each group, the
    /// founder (its first input) and later inputs that are smaller than the founder.
    pub(super) fn minimize_founders(&mut self) -> Result<(), CampaignError> {
        self.minimize_pending(false, None)
    }

    /// Minimizes the entries that [`minimize_founders`](Self::minimize_founders) leaves: hangs,
    /// memory blow-ups, variants (inputs with further minor keys), and groups found only during
    /// minimizations. If a time limits the study, all these share the budget of
    /// [`budget_of_all`](Self::budget_of_all).
    pub(super) fn minimize_others(&mut self) -> Result<(), CampaignError> {
        self.minimize_pending(true, self.budget_of_all())
    }

    /// Returns the time that all minimizations after the runs may take together. `None` means no
    /// limit: either the study as a whole has no time limit, or a single minimization has none.
    pub(super) fn budget_of_all(&self) -> Option<Duration> {
        let minimizing = &self.settings.minimizing;
        let budget = minimizing
            .budget_time
            .filter(|_| self.settings.time.is_some())?;
        Some(of_all(budget, self.fuzzed, minimizing.hurried))
    }

    /// Minimizes one entry after the other, of all groups, the most urgent first, until none is
    /// left or the time `budget` is used up (`None`: no limit). `last`: whether to include entries
    /// that are minimized after all others ([`pending`](crate::minimization_order::pending)).
    fn minimize_pending(
        &mut self,
        last: bool,
        budget: Option<Duration>,
    ) -> Result<(), CampaignError> {
        let mut taken = HashSet::new();
        let began = Instant::now();
        while !self.session.stopped() && budget.is_none_or(|budget| began.elapsed() < budget) {
            let variants = self.settings.minimizing.variants;
            let mut pending = self.campaign.pending(variants, last)?;
            pending.retain(|id| {
                !self.session.is_muted(id.major())
                    && !taken.contains(id)
                    && !self.not_minimizable.contains(id)
            });
            let Some(id) = pending.first().cloned() else {
                break;
            };
            let left = budget.map(|budget| budget.saturating_sub(began.elapsed()));
            let each = shorter(self.settings.minimizing.budget_time, left);
            self.waiting = pending.len() as u64;
            self.phase = Phase::minimizing(taken.len() as u64, self.waiting, each);
            taken.insert(id.clone());
            self.minimize(&id, each)?;
        }
        self.waiting = 0;
        Ok(())
    }

    /// Stores and minimizes slips (inputs that crashed in other groups while entries were
    /// minimized), taken from `slipped`, if they are smaller than the reproducers of the groups in
    /// which they crashed. Ends when none is left, or the time `budget` is used up (`None`: no
    /// limit).
    pub(super) fn minimize_smaller(
        &mut self,
        slipped: &mut SlippedInputs,
        budget: Option<Duration>,
    ) -> Result<(), CampaignError> {
        let began = Instant::now();
        while !self.session.stopped() && budget.is_none_or(|budget| began.elapsed() < budget) {
            let next = slipped.next(self.session.store, &|major| !self.session.is_muted(major))?;
            let Some((entry, slip)) = next else {
                return Ok(());
            };
            if entry.crash.of.is_none() || self.not_minimizable.contains(&entry.id) {
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

    /// Minimizes one entry within the time `each` (`None`: no limit), and measures how often its
    /// reproducer fails; waits while the disk is full. Does nothing for entries that a campaign on
    /// a single target has found.
    fn minimize(&mut self, id: &EntryId, each: Option<Duration>) -> Result<(), CampaignError> {
        if (self.entry(id)?).is_none_or(|entry| entry.crash.of.is_none()) {
            return Ok(());
        }
        loop {
            let result = self.minimize_once(id, each);
            if self.session.waits_for_space(&result) {
                continue;
            }
            let done = self.session.show_minimized(id, result);
            if self.unless_gone(id, done)? == Some(true) {
                self.replay(id)?;
            }
            return Ok(());
        }
    }

    /// Returns the value of `result` as `Some`, or its error. But if the error says that the
    /// program of the entry `id` cannot be run any more, or that its crash does not happen again,
    /// tells the user once and returns `Ok(None)`, so that other entries are still minimized.
    pub(super) fn unless_gone<T>(
        &mut self,
        id: &EntryId,
        result: Result<T, CampaignError>,
    ) -> Result<Option<T>, CampaignError> {
        match result {
            Err(error) if is_of_target(&error) => {
                if self.not_minimizable.insert(id.clone()) && !self.session.stopped() {
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
        self.reduce_options(id)?;
        let progress = self.progress();
        let minimizing = Minimizing {
            budget_time,
            ..self.settings.minimizing.clone()
        };
        self.session.minimize(id, &minimizing, &progress)
    }

    /// Minimizes the arguments with which the utility of an entry is called, and records the
    /// shorter call. Does nothing if the minimization of the entry's input has begun already.
    fn reduce_options(&mut self, id: &EntryId) -> Result<(), CampaignError> {
        let entry = self.entry(id)?;
        let Some(entry) = entry.filter(|entry| !entry.log().exists()) else {
            return Ok(());
        };
        let log = lock(self.session.store).options_log(id)?;
        let minimizing = &self.settings.minimizing;
        let reduced = match minimize_options(minimizing, &entry, &log, self.session.stop) {
            // A crash that a plain execve does not reproduce keeps its options, and so does one
            // whose shorter call a killed process has recorded: the log is that of the longer one.
            Err(CampaignError::Minimize(
                MinimizeError::NotFailing { .. } | MinimizeError::Log(LogError::Mismatch { .. }),
            )) => None,
            answer => answer?,
        };
        if let Some(subject) = reduced
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

/// Returns the time that several minimizations may take together, if each may take the time
/// `budget`. If the study is not `hurried`, this is `budget`. If it is, this is a fifth of the time
/// `fuzzed`, at least 10 s and at most `budget`.
fn of_all(budget: Duration, fuzzed: Duration, hurried: bool) -> Duration {
    match hurried {
        true => budget.min((fuzzed / RUNNING_DIVISOR).max(LEAST)),
        false => budget,
    }
}

/// Returns the shorter of two time limits; `None` means no limit.
fn shorter(one: Option<Duration>, other: Option<Duration>) -> Option<Duration> {
    one.into_iter().chain(other).min()
}

/// Minimizes the arguments of the utility with which a study has found the crash of `entry`;
/// continues the minimization log `log` if it exists. Returns the utility with the remaining
/// arguments. `None` if there are no arguments, the remaining arguments do not make a call, or the
/// entry was not found by a study.
pub(super) fn minimize_options(
    minimizing: &Minimizing,
    entry: &Entry,
    log: &std::path::Path,
    stop: &AtomicBool,
) -> Result<Option<Subject>, CampaignError> {
    let Some(subject) = &entry.crash.of else {
        return Ok(None);
    };
    // By `command`, no server has to be started for each candidate; keys are the same by all ways.
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
    let mut journal = Journal::resume_or_begin(log, start).map_err(MinimizeError::from)?;
    let held = HeldCrash::from(&entry.crash);
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
    /// Measures how often the reproducer of an entry fails, and records the rate with the utility;
    /// does nothing for entries that no study has found. If the call of ddfuzz is stopped, the next
    /// call measures the rate.
    pub(super) fn replay(&mut self, id: &EntryId) -> Result<(), CampaignError> {
        let Some(entry) = self.entry(id)? else {
            return Ok(());
        };
        let Some(subject) = &entry.crash.of else {
            return Ok(());
        };
        let replayed = self.replayed(&entry);
        // After a stop, the next call measures it.
        let Some(Some(replayed)) = self.unless_gone(id, replayed)? else {
            return Ok(());
        };
        let (kind, major) = (id.kind(), id.major());
        (self.state()).note_replayed(&subject.utility, kind, major, replayed);
        self.save()
    }

    /// Measures how often reproducers fail, for all entries that were minimized but not measured
    /// yet.
    pub(super) fn replay_rest(&mut self) -> Result<(), CampaignError> {
        for id in self.not_replayed()? {
            if !self.session.stopped() && !self.not_minimizable.contains(&id) {
                self.replay(&id)?;
            }
        }
        Ok(())
    }

    /// Returns the entries whose failure rates are still to be measured: for each group and utility
    /// of this study without a failure rate, the minimized entry with the smallest reproducer.
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

/// Runs `input` `tries` times, with plain `execve` and address randomization, and counts the runs
/// that end in the group of `crash`. If not all do, also runs it `tries` times without
/// randomization. If `crash` is a hang, every hang counts, since it may be at a different position
/// each time. Returns `None` if `stop` turns true.
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
        assert_eq!(
            shorter(Some(seconds(60)), Some(seconds(4))),
            Some(seconds(4))
        );
        assert_eq!(shorter(Some(seconds(60)), None), Some(seconds(60)));
        assert_eq!(shorter(None, None), None);
    }
}
