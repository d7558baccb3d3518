//! Trimming, round by round, until nothing changes any more.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use super::choose::Again;
use super::keeping::{AllKept, Keeping};
use super::owners::owners;
use super::settings::{Trim, TrimBy};
use super::{CleanError, Doing, Watcher};
use crate::cover::{Effort, cover};
use crate::trim::{ToTrim, Trimmed, Trimming, Wanted, Watch, trim_all};
use crate::{Features, Union};
use ddfuzz_minimize::{CallbackError, Claim, Slip};
use ddfuzz_store::hash_of;

/// More rounds have never changed much, and each costs tests.
const ROUNDS: u32 = 8;

/// Runs contents again: what they reach each time.
pub(super) type Steady<'a> = &'a dyn Fn(&[&[u8]]) -> Result<Vec<Again>, CleanError>;
/// Takes a crash that a candidate of a content has run into, and the number of its test.
pub(super) type OnSlip<'a> =
    &'a (dyn Fn(&[u8], &Slip, Option<u64>) -> Result<(), CallbackError> + Sync);

/// What trimming needs besides the files.
pub(super) struct Trims<'a> {
    /// How files are trimmed.
    pub trim: &'a Trim,
    /// The same, for the target.
    pub trimming: &'a Trimming,
    /// Workers.
    pub jobs: usize,
    /// Where logs and results go.
    pub folder: &'a Path,
    /// What the kept files have to reach together.
    pub wanted: &'a Features,
    /// What was seen to be reached at all, which all files share.
    pub seen: &'a Arc<Features>,
    /// Runs contents again: what they reach each time.
    pub steady: Steady<'a>,
    /// Takes crashes that candidates of a content have run into.
    pub on_slip: OnSlip<'a>,
    /// Turns true when the user stops.
    pub stop: &'a AtomicBool,
}

/// What trimming came to, besides what it did to the files.
#[derive(Debug, Default)]
pub(super) struct Ran {
    /// Runs that it took.
    pub runs: u64,
    /// The names of all contents that were trimmed, or were before with the same demands.
    pub names: BTreeSet<String>,
}

/// A file that is to be trimmed.
struct Task {
    /// Its place among the kept ones.
    at: usize,
    /// What it is kept for.
    owned: Features,
    file: ToTrim,
}

impl Trims<'_> {
    /// Trims `kept`, drops those that are not needed any more, and goes on until nothing changes.
    pub fn run(
        &self,
        kept: &mut Vec<Keeping>,
        watcher: &mut dyn Watcher,
    ) -> Result<Ran, CleanError> {
        let mut ran = Ran::default();
        for round in 1..=ROUNDS {
            let changed = self.round(round, kept, &mut ran, watcher)?;
            let dropped = self.drop_needless(kept)?;
            if !changed && !dropped {
                break;
            }
        }
        Ok(ran)
    }

    /// One round; whether any file is shorter now.
    fn round(
        &self,
        round: u32,
        kept: &mut [Keeping],
        ran: &mut Ran,
        watcher: &mut dyn Watcher,
    ) -> Result<bool, CleanError> {
        let tasks = self.tasks(round, kept);
        ran.names
            .extend(tasks.iter().map(|task| hash_of(&task.file.input)));
        let of = tasks.len() as u64;
        watcher.doing(Doing::Trimming { round, done: 0, of });
        let mut done: Vec<Option<Trimmed>> = vec![None; tasks.len()];
        let mut count = 0;
        let mut on_trimmed = |number: usize, trimmed: Trimmed| -> Result<(), CallbackError> {
            done[number] = Some(trimmed);
            count += 1;
            let done = count;
            watcher.doing(Doing::Trimming { round, done, of });
            Ok(())
        };
        let on_slip = self.on_slip;
        let mut on_slip_of =
            |number: usize, slip: &Slip, test| on_slip(&tasks[number].file.input, slip, test);
        let watch = Watch {
            on_trimmed: &mut on_trimmed,
            on_slip: &mut on_slip_of,
            stop: self.stop,
        };
        let files = tasks.iter().map(|task| task.file.clone());
        trim_all(self.trimming, files, self.jobs, watch)?;
        let runs = done.iter().flatten().filter(|trimmed| !trimmed.reused);
        ran.runs += runs
            .map(|trimmed| trimmed.tests.executed + trimmed.tests.checks)
            .sum::<u64>();
        let done = tasks.into_iter().zip(done);
        let done = done.filter_map(|(task, trimmed)| Some((task, trimmed?)));
        self.take(kept, done.collect())
    }

    /// What each file is to be trimmed to, those aside of which nothing more can be trimmed.
    fn tasks(&self, round: u32, kept: &[Keeping]) -> Vec<Task> {
        let reached: Vec<(u64, &Features)> = (kept.iter())
            .map(|kept| (kept.text().len() as u64, &kept.features))
            .collect();
        let owned = owners(&reached, self.wanted);
        let mut tasks = Vec::new();
        for (at, (kept, owned)) in kept.iter().zip(owned).enumerate() {
            if kept.whole {
                continue;
            }
            let wanted = match self.trim.by {
                TrimBy::Worth => Wanted::worth(owned.clone(), Arc::clone(self.seen)),
                TrimBy::Signature => {
                    let unsteady = self.seen.less(self.wanted);
                    Wanted::signature(kept.features.clone(), &unsteady)
                }
            };
            if kept.settled_for.as_ref() == Some(&wanted.must) {
                continue;
            }
            let hash = hash_of(kept.text());
            let name = match round {
                1 => hash,
                round => format!("{hash}-{round}"),
            };
            let file = ToTrim {
                input: kept.text().to_owned(),
                wanted,
                folder: self.folder.join(name),
            };
            tasks.push(Task { at, owned, file });
        }
        tasks
    }

    /// Takes the results where they reach what the files are kept for; says whether any did.
    fn take(&self, kept: &mut [Keeping], done: Vec<(Task, Trimmed)>) -> Result<bool, CleanError> {
        let mut shorter = Vec::new();
        for (task, trimmed) in done {
            let keeping = &mut kept[task.at];
            if trimmed.size_after < keeping.text().len() as u64 {
                let path = task.file.folder.join("minimized");
                let bytes =
                    std::fs::read(&path).map_err(|_| CleanError::Changed { path: path.clone() })?;
                shorter.push((task, trimmed, bytes));
                continue;
            }
            if trimmed.left.is_none() {
                keeping.claim.get_or_insert(trimmed.claim.to_string());
            }
            keeping.settled_for = Some(task.file.wanted.must);
        }
        let texts: Vec<&[u8]> = shorter.iter().map(|(_, _, bytes)| &bytes[..]).collect();
        let measured = (self.steady)(&texts)?;
        let mut changed = false;
        for ((task, trimmed, bytes), again) in shorter.into_iter().zip(measured) {
            let keeping = &mut kept[task.at];
            keeping.settled_for = match trimmed.claim {
                Claim::BestSoFar => None,
                _ => Some(task.file.wanted.must.clone()),
            };
            // By many runs in one process it is not what it was by single ones.
            let lacks = !again.steady.has_all(&task.owned);
            // What is trimmed reaches no more than the corpus does: the check is to find the same.
            let gains = !self.seen.has_all(&again.steady);
            if lacks || gains {
                keeping.settled_for = Some(task.file.wanted.must);
                continue;
            }
            keeping.bytes = Some(bytes);
            keeping.features = again.steady;
            keeping.time = again.time;
            keeping.claim = Some(trimmed.claim.to_string());
            changed = true;
        }
        Ok(changed)
    }

    /// Drops what the others reach, too; says whether there was any.
    fn drop_needless(&self, kept: &mut Vec<Keeping>) -> Result<bool, CleanError> {
        if self.stop.load(Ordering::Relaxed) {
            return Err(CleanError::Interrupted);
        }
        kept.sort_by(|a, b| (a.text().len(), a.text()).cmp(&(b.text().len(), b.text())));
        let before = kept.len();
        let mut whole = Union::default();
        let stay = kept.iter().filter(|kept| kept.whole);
        stay.for_each(|kept| whole.add(&kept.features));
        let (files, covered) = (&mut AllKept(kept), whole.all());
        let cover = cover(files, self.wanted, &covered, &Effort::default());
        let cover = cover.map_err(CleanError::journal)?;
        let mut number = 0;
        kept.retain(|kept| {
            number += 1;
            kept.whole || cover.chosen.binary_search(&(number - 1)).is_ok()
        });
        Ok(kept.len() < before)
    }
}
