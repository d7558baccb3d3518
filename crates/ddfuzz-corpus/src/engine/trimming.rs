//! Trims the kept files in rounds: decides which features each file must keep, drops files that
//! become redundant, and stores crashes that occur on the way.

use std::collections::{BTreeSet, HashMap};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use super::choose::Reruns;
use super::result::CleanTotals;
use super::subset::{AllKept, KeptFile};
use super::{CleanError, CleanPhase, Engine, Trim, TrimBy};
use crate::cover::{Effort, cover};
use crate::quarantine::file_slip;
use crate::trim::{RequiredFeatures, ToTrim, TrimSettings, TrimWatch, Trimmed, trim_all};
use crate::{Feature, FeatureUnion, Features};
use ddfuzz_campaign::Screen;
use ddfuzz_exec::ExecError;
use ddfuzz_minimize::log::ContentHash;
use ddfuzz_minimize::{CallbackError, Claim, Slip};
use ddfuzz_model::pool::lock;
use ddfuzz_store::report::clean::CleanGroup;
use ddfuzz_store::{Entry, Kind, StoreError, hash_of};
use ddfuzz_triage::{Found, Triager, Verdict};

/// Maximum number of rounds of trimming; later rounds rarely change anything.
const ROUNDS: u32 = 8;

/// A function that runs each of the given contents several times. It returns for each content the
/// features that its runs reached, and its CPU time.
pub(super) type Rerun<'a> = &'a dyn Fn(&[&[u8]]) -> Result<Vec<Reruns>, CleanError>;
/// A function that is called with a crash that a candidate has caused: with the content that was
/// being trimmed, the crash, and the number of the candidate's test (`None` if a check of the log
/// has crashed).
pub(super) type OnSlip<'a> =
    &'a (dyn Fn(&[u8], &Slip, Option<u64>) -> Result<(), CallbackError> + Sync);

/// Settings and callbacks of the rounds in which kept files are trimmed.
pub(super) struct TrimRounds<'a> {
    /// What the user wants of trimming: the budget for each file, and which features a trimmed file
    /// must keep.
    pub trim: &'a Trim,
    /// The target, the way of execution, and the delta debugging algorithm by which files are
    /// trimmed.
    pub trimming: &'a TrimSettings,
    /// Number of worker threads that trim files.
    pub jobs: usize,
    /// Folder for the logs and results of all trimmed files.
    pub folder: &'a Path,
    /// Features that all kept files must reach together.
    pub wanted: &'a Features,
    /// Features that any run of any input reached; trimmed files may reach no others.
    pub seen: &'a Arc<Features>,
    /// Callback that runs trimmed contents again, to verify that they still reach the features that
    /// they must keep.
    pub rerun: Rerun<'a>,
    /// Called with each crash that a candidate caused, to store it.
    pub on_slip: OnSlip<'a>,
    /// Flag that turns true when the user stops the cleanup.
    pub stop: &'a AtomicBool,
}

/// The result of all rounds of trimming: the number of runs, and which contents were trimmed.
#[derive(Debug, Default)]
pub(super) struct TrimRuns {
    /// Number of runs of the target that trimming took.
    pub runs: u64,
    /// Hashes of all contents that were trimmed, in this call of ddfuzz or an interrupted one
    /// before.
    pub names: BTreeSet<String>,
}

/// A kept file to trim in the current round, and the features that it must keep.
struct TrimTask {
    /// Index of the file to trim in the list of kept files.
    at: usize,
    /// Features that the file must keep, because it is the smallest kept file that reaches them.
    owned: Features,
    /// The content to trim, the features that it must keep, and the folder of its log.
    file: ToTrim,
}

impl TrimRounds<'_> {
    /// Trims the kept files and drops those that become redundant, until a round changes nothing or
    /// [`ROUNDS`] rounds are done. Returns the number of runs, and the hashes of the contents that
    /// were trimmed.
    pub fn run(
        &self,
        kept: &mut Vec<KeptFile>,
        screen: &mut dyn Screen<CleanPhase>,
    ) -> Result<TrimRuns, CleanError> {
        let mut ran = TrimRuns::default();
        for round in 1..=ROUNDS {
            let changed = self.round(round, kept, &mut ran, screen)?;
            let dropped = self.drop_needless(kept)?;
            if !changed && !dropped {
                break;
            }
        }
        // After the last round, other files may be needed for other features than in it.
        for task in self.tasks(ROUNDS + 1, kept) {
            kept[task.at].withdraw_claim();
        }
        Ok(ran)
    }

    /// Trims each kept file once, in the round with the number `round`, and adds the runs made to
    /// `ran`. Returns true if at least one file became shorter, and false if none did.
    fn round(
        &self,
        round: u32,
        kept: &mut [KeptFile],
        ran: &mut TrimRuns,
        screen: &mut dyn Screen<CleanPhase>,
    ) -> Result<bool, CleanError> {
        let tasks = self.tasks(round, kept);
        ran.names
            .extend(tasks.iter().map(|task| hash_of(&task.file.input)));
        let of = tasks.len() as u64;
        screen.progress(&CleanPhase::Trimming { round, done: 0, of });
        let mut done: Vec<Option<Trimmed>> = vec![None; tasks.len()];
        let mut count = 0;
        let mut on_trimmed = |number: usize, trimmed: Trimmed| -> Result<(), CallbackError> {
            done[number] = Some(trimmed);
            count += 1;
            let done = count;
            screen.progress(&CleanPhase::Trimming { round, done, of });
            Ok(())
        };
        let on_slip = self.on_slip;
        let mut on_slip_of =
            |number: usize, slip: &Slip, test| on_slip(&tasks[number].file.input, slip, test);
        let watch = TrimWatch {
            on_trimmed: &mut on_trimmed,
            on_slip: &mut on_slip_of,
            stop: self.stop,
        };
        let files = tasks.iter().map(|task| task.file.clone());
        trim_all(self.trimming, files, self.jobs, watch)?;
        let runs = done.iter().flatten().filter(|trimmed| !trimmed.reused);
        ran.runs += runs
            .map(|trimmed| {
                (trimmed.tests.executed + trimmed.tests.checks).saturating_sub(trimmed.spared)
            })
            .sum::<u64>();
        let done = tasks.into_iter().zip(done);
        let done = done.filter_map(|(task, trimmed)| Some((task, trimmed?)));
        self.take(kept, done.collect())
    }

    /// Returns what is to be trimmed in a round: each kept file with the features that it must
    /// keep. Files that cannot become shorter are left out.
    fn tasks(&self, round: u32, kept: &[KeptFile]) -> Vec<TrimTask> {
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
                TrimBy::Worth => RequiredFeatures::worth(owned.clone()),
                TrimBy::Signature => {
                    let unsteady = self.seen.less(self.wanted);
                    RequiredFeatures::signature(kept.features.clone(), &unsteady)
                }
            };
            if kept.settled_for.as_ref() == Some(&wanted.required) {
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
                known: Arc::clone(&kept.known),
            };
            tasks.push(TrimTask { at, owned, file });
        }
        tasks
    }

    /// Replaces kept files by their trimmed contents, which `done` holds. A file is replaced only
    /// if the trimmed content is shorter, and reaches the features that the file must keep in each
    /// of several further runs. Returns true if any file was replaced, and false if none was.
    fn take(
        &self,
        kept: &mut [KeptFile],
        done: Vec<(TrimTask, Trimmed)>,
    ) -> Result<bool, CleanError> {
        let mut shorter = Vec::new();
        for (task, trimmed) in done {
            let kept_file = &mut kept[task.at];
            if trimmed.size_after < kept_file.text().len() as u64 {
                let path = task.file.folder.join("minimized");
                let bytes =
                    std::fs::read(&path).map_err(|_| CleanError::Changed { path: path.clone() })?;
                shorter.push((task, trimmed, bytes));
                continue;
            }
            // The search may end with other bytes of the same size; the file keeps its own.
            let is_proved = trimmed.blake3 == ContentHash::of(kept_file.text());
            match trimmed.left {
                None if is_proved => kept_file.claim = Some(trimmed.claim.to_string()),
                None => kept_file.claim = Some(Claim::BestSoFar.to_string()),
                Some(_) => kept_file.withdraw_claim(),
            }
            kept_file.settled_for = Some(task.file.wanted.required);
        }
        let texts: Vec<&[u8]> = shorter.iter().map(|(_, _, bytes)| &bytes[..]).collect();
        let measured = (self.rerun)(&texts)?;
        let mut changed = false;
        for ((task, trimmed, bytes), again) in shorter.into_iter().zip(measured) {
            let kept_file = &mut kept[task.at];
            kept_file.settled_for = match trimmed.claim {
                Claim::BestSoFar => None,
                _ => Some(task.file.wanted.required.clone()),
            };
            // Many runs in one process may reach other features than the single runs of trimming.
            if !again.steady.has_all(&task.owned) {
                kept_file.withdraw_claim();
                kept_file.settled_for = Some(task.file.wanted.required);
                continue;
            }
            kept_file.bytes = Some(bytes);
            kept_file.features = again.steady;
            kept_file.time = again.time;
            kept_file.claim = Some(trimmed.claim.to_string());
            changed = true;
        }
        Ok(changed)
    }

    /// Drops each kept file whose wanted features the other kept files reach as well, except those
    /// kept for flaky features. Returns true if any was dropped, and false if none was.
    fn drop_needless(&self, kept: &mut Vec<KeptFile>) -> Result<bool, CleanError> {
        if self.stop.load(Ordering::Relaxed) {
            return Err(CleanError::Interrupted);
        }
        kept.sort_by(|a, b| (a.text().len(), a.text()).cmp(&(b.text().len(), b.text())));
        let before = kept.len();
        let mut whole = FeatureUnion::default();
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

/// Assigns each feature of `wanted` to the smallest kept file that reaches it, so that larger files
/// may lose it; returns the features assigned to each file. `kept` holds the size in bytes and the
/// features of each file.
pub(super) fn owners(kept: &[(u64, &Features)], wanted: &Features) -> Vec<Features> {
    let mut order: Vec<usize> = (0..kept.len()).collect();
    order.sort_by_key(|at| (kept[*at].0, *at));
    let mut owner: HashMap<Feature, usize> = HashMap::new();
    for at in order {
        for feature in kept[at].1.as_slice() {
            if wanted.contains(*feature) {
                owner.entry(*feature).or_insert(at);
            }
        }
    }
    let mut owned = vec![Vec::new(); kept.len()];
    for (feature, at) in owner {
        owned[at].push(feature);
    }
    owned.into_iter().map(Features::from_unsorted).collect()
}

/// A crash group in the output directory, together with its entries (stored crashes).
pub(super) struct GroupEntries {
    told: CleanGroup,
    pub(super) entries: Vec<Entry>,
}

impl GroupEntries {
    /// Returns true if at least one crash of the group was found by chance, while a file was
    /// trimmed whose content has one of the hashes `names`; else false.
    fn is_slip_of(&self, names: &BTreeSet<String>) -> bool {
        let found = self.entries.iter().map(|entry| &entry.crash.found);
        found.flatten().any(|found| match found {
            Found::Slip { of, .. } => names.contains(of),
            _ => false,
        })
    }
}

impl Engine<'_> {
    /// Stores a crash that a candidate caused while the content `text` was trimmed, in a crash
    /// group.
    pub(super) fn file_slip_of(
        &self,
        text: &[u8],
        slip: &Slip,
        test: Option<u64>,
    ) -> Result<(), CallbackError> {
        let (of, slip) = (ContentHash::of(text), self.slip_of_filed(slip)?);
        let target = &self.cleaning.filed_for;
        file_slip(self.store, target, self.campaign, of, &slip, test)?;
        Ok(())
    }

    /// Minimizes the crash groups that are not minimized yet. Then adds to `totals` the groups
    /// whose crashes occurred while one of the contents `trimmed` was trimmed (in this call or an
    /// interrupted one), or while one of these groups or of those already in `totals` was
    /// minimized.
    pub(super) fn take_slips(
        &self,
        trimmed: BTreeSet<String>,
        screen: &mut dyn Screen<CleanPhase>,
        totals: &mut CleanTotals,
    ) -> Result<(), CleanError> {
        let waits =
            |held: &GroupEntries| held.entries.iter().all(|entry| entry.minimized.is_none());
        if self.group_entries()?.iter().any(waits) {
            self.minimize_rest(screen)?;
        }
        let mut names = trimmed;
        let mut rest = self.group_entries()?;
        // Minimizing a group may cause crashes of further groups, and so on.
        loop {
            let (told, others): (Vec<GroupEntries>, Vec<GroupEntries>) = (rest.into_iter())
                .partition(|held| totals.has_group(&held.told) || held.is_slip_of(&names));
            if told.is_empty() {
                return Ok(());
            }
            for held in told {
                names.extend(held.entries.iter().map(|entry| entry.id.hash().to_owned()));
                totals.add_slipped(held.told);
            }
            rest = others;
        }
    }

    /// Reads all crash groups of the output directory, with their stored crashes.
    pub(super) fn group_entries(&self) -> Result<Vec<GroupEntries>, StoreError> {
        let reader = lock(self.store).reader().clone();
        let mut all = Vec::new();
        for kind in Kind::ALL {
            for group in reader.groups(kind)? {
                let major = group.record.major.short();
                all.push(GroupEntries {
                    entries: reader.entries(kind, &major)?,
                    told: CleanGroup {
                        folder: kind.folder().to_owned(),
                        class: group.record.class.to_string(),
                        major,
                        count: 0,
                    },
                });
            }
        }
        Ok(all)
    }

    /// Repeats the crash `slip` (met while trimming) on the target for which crashes are stored, if
    /// trimming has run another build of this target (one with coverage counters). Returns `slip`
    /// with the record of the crash on the target; its `crash` is `None` if the input does not
    /// crash the target in each run.
    fn slip_of_filed(&self, slip: &Slip) -> Result<Slip, ExecError> {
        let cleaning = self.cleaning;
        if cleaning.target == cleaning.filed_for || slip.crash.is_none() {
            return Ok(slip.clone());
        }
        let mut triager = Triager::of_target(&cleaning.filed_for, cleaning.way)?;
        let crash = match triager.examine(&slip.input)? {
            Verdict::Crash(crash) => Some(crash),
            Verdict::Flaky { .. } => None,
        };
        Ok(Slip {
            crash,
            ..slip.clone()
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::features::set;
    use crate::trim::SkipReason;
    use ddfuzz_exec::{Program, Target, Way};

    /// Makes the result of trimming a file of three bytes, for tests: `bytes` is the trimmed
    /// content, `claim` its guarantee, and `left` the reason why the file was skipped.
    fn trimmed(bytes: &[u8; 3], claim: Claim, left: Option<SkipReason>) -> Trimmed {
        Trimmed {
            size_before: 3,
            size_after: 3,
            blake3: ContentHash::of(bytes),
            tests: Default::default(),
            claim,
            proved: Default::default(),
            features: set(&[1]),
            left,
            reused: false,
            spared: 0,
        }
    }

    #[test]
    fn a_claim_is_that_of_the_last_round_for_the_same_bytes() {
        let target = Target::new(Program::Bundled("crtplot".to_owned()));
        let trimming = TrimSettings::of_target(target, Way::Command);
        let rounds = TrimRounds {
            trim: &Trim {
                by: TrimBy::Worth,
                search: None,
                tests: 1,
                time: None,
            },
            trimming: &trimming,
            jobs: 1,
            folder: Path::new("trimmed"),
            wanted: &set(&[1, 2]),
            seen: &Arc::new(set(&[1, 2])),
            rerun: &|_| Ok(Vec::new()),
            on_slip: &|_, _, _| Ok(()),
            stop: &AtomicBool::new(false),
        };
        let unsteady = Some(SkipReason::Unsteady);
        for (bytes, claim, left, expected) in [
            (b"abc", Claim::OneMinimal, None, "1-minimal"),
            (b"abc", Claim::BestSoFar, None, "best-so-far"),
            (b"abc", Claim::BestSoFar, unsteady, "best-so-far"),
            (b"00c", Claim::OneMinimal, None, "best-so-far"),
        ] {
            let mut kept = [KeptFile {
                bytes: Some(b"abc".to_vec()),
                size_before: 9,
                features: set(&[1, 2]),
                claim: Some("1-minimal".to_owned()),
                settled_for: Some(set(&[1])),
                ..KeptFile::default()
            }];
            let mut tasks = rounds.tasks(2, &kept);
            assert_eq!(tasks.len(), 1, "it must now keep other features");
            let done = vec![(tasks.remove(0), trimmed(bytes, claim, left))];
            assert!(!rounds.take(&mut kept, done).unwrap());
            assert_eq!(kept[0].claim.as_deref(), Some(expected));
            assert!(rounds.tasks(3, &kept).is_empty());
        }
    }

    #[test]
    fn the_smallest_file_that_reaches_a_feature_owns_it() {
        let (large, small, equal) = (set(&[1, 2, 3, 9]), set(&[2, 4]), set(&[2, 3]));
        let kept = [(50, &large), (7, &small), (7, &equal)];
        let owned = owners(&kept, &set(&[1, 2, 3, 4, 5]));
        assert_eq!(owned, [set(&[1]), set(&[2, 4]), set(&[3])]);
    }
}
