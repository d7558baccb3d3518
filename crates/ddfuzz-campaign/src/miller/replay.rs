//! How often a reproducer fails when it is run again.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};

use super::engine::Engine;
use crate::error::CampaignError;
use crate::ledger::lock;
use ddfuzz_exec::{ExecError, Target, Way};
use ddfuzz_store::{Entry, EntryId, Kind, Replayed};
use ddfuzz_triage::{Crash, Found, Quick, Triager};

impl Engine<'_> {
    /// Runs the reproducer again, and notes with the utility how often it fails.
    pub(super) fn replay(&mut self, id: &EntryId) -> Result<(), CampaignError> {
        let Some(entry) = self.entry(id)? else {
            return Ok(());
        };
        let Some(subject) = &entry.crash.of else {
            return Ok(());
        };
        let replayed = self.replayed(&entry);
        // Who has stopped meanwhile gets it from the call that goes on.
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
            if !self.stopped() && !self.gone.contains(&id) {
                self.replay(&id)?;
            }
        }
        Ok(())
    }

    /// The least reproducer of each group of this study without a rate.
    fn not_replayed(&mut self) -> Result<Vec<EntryId>, CampaignError> {
        let reader = lock(self.store).reader().clone();
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
                    if self.muted(&major)
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
        let stop = self.stop;
        Ok(replay(target, way, &input, (&entry.crash, tries), stop)?)
    }
}

/// Runs `input` by plain `execve` with random addresses, `tries` times; where some of them do not
/// end in the group of `crash`, as often without. A hang may stand elsewhere each time. `None` where
/// `stop` turns true meanwhile.
///
/// # Errors
/// When the target cannot be started or traced.
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
