//! Keeps the chosen inputs: the kept files with the reasons, and the reserve of inputs that are not
//! kept, some of which are added again later.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::io;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use super::candidates::Candidates;
use super::choose::{AlreadyCovered, CandidateSource, Choice, Reruns, choose};
use super::result::CleanTotals;
use super::trimming::TrimRounds;
use super::{CleanError, CleanPhase, Engine};
use crate::cover::{Effort, Sets, Slowness};
use crate::measure::{Contents, run_again};
use crate::trim::{KnownRuns, TrimSettings};
use crate::{ContentId, Feature, FeatureUnion, Features};
use ddfuzz_campaign::{Screen, identity};
use ddfuzz_minimize::Claim;
use ddfuzz_store::report::clean::{Cover, LibFuzzerCounts};
use ddfuzz_store::report::size;

/// Number of inputs of the `--onto` corpus whose features are held in memory at once.
const AT_ONCE: usize = 1024;

impl Engine<'_> {
    /// Chooses inputs that reach all features of the corpus, adds them to `kept`, and trims them;
    /// without a subset, adds every input that does not fail, untrimmed. Returns the numbers of all
    /// inputs that do not fail; `None` if results depend on earlier runs in the same process, so
    /// that each run needs a separate process.
    pub(super) fn cover(
        &self,
        contents: &mut Contents,
        kept: &mut KeptSet,
        screen: &mut dyn Screen<CleanPhase>,
        totals: &mut CleanTotals,
    ) -> Result<Option<Vec<usize>>, CleanError> {
        let (healthy, recovered) = self.sort_out(contents, screen, totals)?;
        let settings = self.settings();
        let mut pool = Candidates::new(contents, &settings, self.cleaning.repeats, healthy);
        pool.recover(&recovered)?;
        screen.progress(&CleanPhase::Choosing {
            contents: pool.healthy.len() as u64,
        });
        let already = AlreadyCovered {
            covered: &kept.covered,
            seen: &kept.seen,
        };
        let effort = Effort::among(pool.healthy.len());
        let Some(choice) = choose(&mut pool, already, &effort)? else {
            return Ok(None);
        };
        let relapsed = std::mem::take(&mut pool.relapsed);
        self.file(&relapsed, screen, totals)?;
        self.take(&mut pool, choice, kept, totals)?;
        let fit = pool.healthy.iter().copied();
        let fit = fit.filter(|number| !pool.unfit.contains(number)).collect();
        let trimmed = match self.cleaning.subset {
            true => self.trim(kept, screen)?,
            false => BTreeSet::new(),
        };
        self.take_slips(trimmed, screen, totals)?;
        Ok(Some(fit))
    }

    /// Runs the inputs of the `--onto` corpus again, and records three things in `kept`: the paths
    /// of the inputs that do not fail; the features that these reach in every run, which the kept
    /// files need not cover; and the features that they reach in any run.
    pub(super) fn look_at_onto(
        &self,
        onto: &mut Contents,
        kept: &mut KeptSet,
        screen: &mut dyn Screen<CleanPhase>,
    ) -> Result<(), CleanError> {
        let healthy: Vec<usize> = (0..onto.len())
            .filter(|at| !onto.is_suspicious(*at))
            .collect();
        for number in &healthy {
            kept.onto.push(onto.path(*number)?);
        }
        if onto.places.is_none() {
            return Ok(());
        }
        screen.progress(&CleanPhase::Repeating {
            contents: healthy.len() as u64,
        });
        let times = self.cleaning.repeats.saturating_sub(1);
        let (mut union, mut ever) = (FeatureUnion::default(), FeatureUnion::default());
        for numbers in healthy.chunks(AT_ONCE) {
            let repeated = onto.repeat(&self.settings(), numbers, times)?;
            let repeated = repeated.ok_or(CleanError::Interrupted)?;
            for repeated in repeated.iter().filter(|repeated| !repeated.suspicious) {
                union.add(&repeated.each_time);
                ever.add(&repeated.ever());
            }
        }
        // The check must not report features as new that the `--onto` corpus reaches in some runs.
        kept.seen = ever.all();
        kept.covered = union.all();
        Ok(())
    }

    /// Adds the inputs of `choice` to the files of `kept`, each with the reason why it is kept; if
    /// the user wants no subset, adds all inputs that do not fail. Also records the set cover and
    /// the features of the corpus in `kept`, and in `totals` the sizes and CPU times of all inputs,
    /// and the files that have vanished.
    fn take(
        &self,
        pool: &mut Candidates<'_>,
        choice: Choice,
        kept: &mut KeptSet,
        totals: &mut CleanTotals,
    ) -> Result<(), CleanError> {
        for number in &pool.gone {
            totals.count_gone(
                &pool.contents.path(*number)?,
                pool.contents.id(*number).size(),
            );
        }
        let mut only = BTreeMap::new();
        let once = &choice.once_per_process;
        for (feature, item) in &choice.unique_features.sole {
            // Another input may reach code that runs once per process if it is run first.
            *only.entry(*item).or_insert(0) += u64::from(!once.contains(*feature));
        }
        let private = choice.cover.chosen.iter().copied();
        let private: BTreeMap<usize, &Features> =
            private.zip(&choice.unique_features.private).collect();
        let items: Vec<usize> = match self.cleaning.subset {
            true => {
                let sometimes = choice.sometimes.keys().copied();
                let all: BTreeSet<usize> = sometimes.chain(choice.cover.chosen.clone()).collect();
                all.into_iter().collect()
            }
            false => (0..pool.healthy.len())
                .filter(|item| !pool.unfit.contains(&pool.healthy[*item]))
                .collect(),
        };
        for (item, time) in choice.times.iter().enumerate() {
            totals.spread.sizes_before.add(pool.bytes(item));
            totals.spread.times_before.add(micros(*time));
        }
        for item in items {
            let mut kept_file = self.keep(pool, item, choice.reruns.get(&item))?;
            kept_file.only_here = only.get(&item).copied().unwrap_or(0);
            kept_file.whole = choice.sometimes.contains_key(&item);
            let of_once = private.get(&item).map(|own| own.and(once).len());
            kept_file.why = why(Reasons {
                only_here: kept_file.only_here,
                private: (private.get(&item)).map_or(0, |own| own.less(once).len() as u64),
                once_per_process: of_once.unwrap_or(0) as u64,
                sometimes: choice.sometimes.get(&item).copied().unwrap_or(0),
            });
            kept.files.push(kept_file);
        }
        kept.cover = self.cleaning.subset.then_some(Cover {
            weight: choice.cover.weight,
            lower_bound: choice.cover.lower_bound,
            optimal: choice.cover.optimal,
        });
        kept.flaky_files = choice.sometimes.len() as u64;
        kept.universe = Some(choice.universe);
        kept.once_per_process = choice.once_per_process;
        kept.seen = kept.seen.or(&choice.seen);
        Ok(())
    }

    /// Creates the record of a kept file from the input with the number `item`. Its features and
    /// CPU time are those of the reruns `again`, or of the first run if there were no reruns. If a
    /// subset of the corpus is chosen, the record also has the content. Fails if the file was
    /// removed or changed since it was run.
    fn keep(
        &self,
        pool: &mut Candidates<'_>,
        item: usize,
        again: Option<&Reruns>,
    ) -> Result<KeptFile, CleanError> {
        let number = pool.healthy[item];
        let mut kept = KeptFile::of(pool.contents, number, "")?;
        if self.cleaning.subset {
            let mut bytes = Vec::new();
            let read = pool.contents.read(number, &mut bytes);
            let path = kept.from.clone();
            read.map_err(|_| CleanError::Changed { path })?;
            kept.bytes = Some(bytes);
        }
        if let Some(again) = again {
            (kept.features, kept.time) = (again.steady.clone(), again.time);
        } else if let Some(recovered) = pool.recovered.get(&number) {
            kept.features = recovered.clone();
        }
        Ok(kept)
    }

    /// Trims the kept files in `kept` if the user asked for it; their records then hold the trimmed
    /// contents. Returns the hashes of all contents that were trimmed, as they were before a round
    /// of trimming (stored crashes of their candidates refer to these hashes). Empty without
    /// trimming.
    fn trim(
        &self,
        kept: &mut KeptSet,
        screen: &mut dyn Screen<CleanPhase>,
    ) -> Result<BTreeSet<String>, CleanError> {
        let Some(trim) = &self.cleaning.trim else {
            return Ok(BTreeSet::new());
        };
        let cleaning = self.cleaning;
        let trimming = TrimSettings {
            search: trim.search.clone(),
            budget_tests: Some(trim.tests),
            budget_time: trim.time,
            build: Some(identity(&cleaning.target)?.to_string()),
            ..TrimSettings::of_target(cleaning.target.clone(), cleaning.way)
        };
        let universe = kept.universe.clone().unwrap_or_default();
        let trims = TrimRounds {
            trim,
            trimming: &trimming,
            jobs: cleaning.jobs,
            folder: &self.paths.trimmed(),
            wanted: &universe.less(&kept.covered),
            seen: &Arc::new(kept.seen.or(&kept.covered)),
            rerun: &|texts| self.rerun(texts),
            on_slip: &|text, slip, test| self.file_slip_of(text, slip, test),
            stop: self.stop,
        };
        let ran = trims.run(&mut kept.files, screen)?;
        kept.trim_runs = ran.runs;
        Ok(ran.names)
    }

    /// Runs each of the contents `texts` several times, as the settings say. Returns for each the
    /// features that every run reached (none if a run may have failed), and the shortest CPU time.
    fn rerun(&self, texts: &[&[u8]]) -> Result<Vec<Reruns>, CleanError> {
        let mut all: Vec<Option<Reruns>> = vec![None; texts.len()];
        for round in 0..self.cleaning.repeats {
            let whole = run_again(&self.settings(), &texts, round, &mut |number, seen| {
                let Ok(seen) = seen else { return Ok(()) };
                let features = match seen.suspicious {
                    true => Features::default(),
                    false => seen.features.unwrap_or_default(),
                };
                let again = all[number].get_or_insert_with(|| Reruns {
                    steady: features.clone(),
                    time: Duration::MAX,
                    ..Reruns::default()
                });
                again.steady = again.steady.and(&features);
                again.runs += 1;
                again.time = again.time.min(seen.time);
                Ok(())
            })?;
            if !whole {
                return Err(CleanError::Interrupted);
            }
        }
        Ok(all.into_iter().map(Option::unwrap_or_default).collect())
    }
}

/// For how many features a file is kept, in four counts by what makes the file necessary for them,
/// such as being the only file that reaches them.
#[derive(Clone, Copy)]
struct Reasons {
    /// Number of features that no other input of the corpus reaches.
    only_here: u64,
    /// Number of features that no other kept file reaches.
    private: u64,
    /// Number of features that belong to code which runs once per process, and that no other kept
    /// file is known to reach.
    once_per_process: u64,
    /// Number of flaky features (reached in some runs only) that the file is kept for.
    sometimes: u64,
}

/// Returns the sentence that tells the user why a file is kept.
fn why(reasons: Reasons) -> String {
    let features = |count| size::counted(count, "feature");
    match reasons {
        Reasons {
            only_here: count @ 1..,
            ..
        } => format!(
            "it is the only file of the corpus that reaches {} of its features",
            size::grouped(count)
        ),
        Reasons {
            private: count @ 1..,
            ..
        } => format!(
            "it is the only kept file that reaches {} of its features",
            size::grouped(count)
        ),
        Reasons {
            once_per_process: count @ 1..,
            ..
        } => format!(
            "it is kept for {} of code that runs once per process, which other files may reach if \
             they are run first",
            features(count)
        ),
        Reasons {
            sometimes: count @ 1..,
            ..
        } => format!(
            "it is among the files that most often reach {} which no file reaches each time",
            features(count)
        ),
        _ => "every different file that ends normally is kept".to_owned(),
    }
}

/// Converts a duration to whole microseconds.
pub(super) fn micros(time: Duration) -> u64 {
    u64::try_from(time.as_micros()).unwrap_or(u64::MAX)
}

/// A file of the corpus that is kept, and its trimmed content.
#[derive(Clone, Debug, Default)]
pub(super) struct KeptFile {
    /// Path of the file of the corpus that is kept.
    pub from: PathBuf,
    /// Hex digits of the blake3 hash of the content before trimming.
    pub content: String,
    /// The current content of the kept file; `None` if it is not in memory, which means that it is
    /// still the content of the file of the corpus.
    pub bytes: Option<Vec<u8>>,
    /// Size of the file before trimming, in bytes.
    pub size_before: u64,
    /// Path to which this cleanup has written the current content; `None` if the content is not
    /// written yet.
    pub written: Option<PathBuf>,
    /// Features that every run of the kept file's current content reached; if it was run once,
    /// those of this run.
    pub features: Features,
    /// The shortest CPU time that a run of the kept file took.
    pub time: Duration,
    /// Number of features of the kept file that no other input of the corpus reaches.
    pub only_here: u64,
    /// Whether the file is not trimmed, because it is kept for flaky features, which trimming could
    /// lose.
    pub whole: bool,
    /// Why the file is kept, as a sentence for the user.
    pub why: String,
    /// The guarantee that trimming gives for the kept file's current content, such as 1-minimal;
    /// `None` if it gives none.
    pub claim: Option<String>,
    /// The features that the file had to keep in its last round of trimming, if another round for
    /// the same features would not shorten it; it is then not trimmed for these features again.
    /// Else `None`.
    pub settled_for: Option<Features>,
    /// What runs in fresh processes have shown of the file's candidates in all rounds of trimming.
    pub known: Arc<Mutex<KnownRuns>>,
}

impl KeptFile {
    /// Creates the record of a kept file from the content with the number `number`, with the
    /// features and the CPU time of its first run, and the reason `why` it is kept.
    pub fn of(contents: &Contents, number: usize, why: &str) -> Result<KeptFile, CleanError> {
        let (id, seen) = (contents.id(number), contents.first_run(number)?);
        Ok(KeptFile {
            from: contents.path(number)?,
            content: id.to_string(),
            size_before: id.size(),
            features: seen.features.unwrap_or_default(),
            time: seen.time,
            why: why.to_owned(),
            ..KeptFile::default()
        })
    }

    /// Returns the current size of the kept file in bytes, after trimming if it was trimmed.
    pub fn size(&self) -> u64 {
        let held = self.bytes.as_ref();
        held.map_or(self.size_before, |bytes| bytes.len() as u64)
    }

    /// Returns true if the kept file was trimmed, that is if it is now shorter than the original.
    pub fn is_trimmed(&self) -> bool {
        self.size() < self.size_before
    }

    /// Replaces the guarantee of an earlier round of trimming (such as 1-minimal) by "best so far",
    /// which guarantees nothing, because the file must now keep other features than in that round.
    /// Does nothing if there is no guarantee.
    pub fn withdraw_claim(&mut self) {
        if self.claim.is_some() {
            self.claim = Some(Claim::BestSoFar.to_string());
        }
    }

    /// Returns the current content of the kept file, after trimming if it was trimmed; an empty
    /// slice if the content is not held in memory.
    pub fn text(&self) -> &[u8] {
        self.bytes.as_deref().unwrap_or_default()
    }
}

/// All kept files of a cleanup, and the features that they must reach together.
#[derive(Debug, Default)]
pub(super) struct KeptSet {
    pub files: Vec<KeptFile>,
    /// Features of the corpus that at least one input reaches in every run; `None` if the target
    /// reports no coverage.
    pub universe: Option<Features>,
    /// Features that the `--onto` corpus reaches in every run.
    pub covered: Features,
    /// Paths of the files of the `--onto` corpus that do not fail.
    pub onto: Vec<PathBuf>,
    /// Number of files that are kept because they are among those that most often reach flaky
    /// features; some may be needed for other features, too.
    pub flaky_files: u64,
    /// Features that any run of any input of the corpus or the `--onto` corpus reached.
    pub seen: Features,
    /// Those of the features to be reached that belong to code which runs only once in a process.
    pub once_per_process: Features,
    /// The set cover that determined which files are kept; its weight and lower bound are reported.
    /// `None` if no subset is chosen.
    pub cover: Option<Cover>,
    /// Coverage counts of the target's own fuzzer, before and after the cleanup; `None` if this
    /// fuzzer was not asked.
    pub own_count: Option<LibFuzzerCounts>,
    /// Name of the journal file that holds the features of the corpus's inputs.
    pub journal: &'static str,
    /// Number of runs of the target that trimming took.
    pub trim_runs: u64,
}

impl KeptSet {
    /// Returns true if the runs of the cleanup have shown no flaky coverage in the corpus: each
    /// input has reached the same features in each run, except those of code that runs once per
    /// process.
    pub fn is_steady(&self) -> bool {
        let steady = self.universe.as_ref();
        let flaky = steady.map(|steady| self.seen.less(steady).less(&self.covered));
        flaky.is_some_and(|flaky| flaky.is_empty())
    }
}

/// The kept files as inputs to choose from: a second set cover of them shows which files trimming
/// has made unnecessary.
pub(super) struct AllKept<'a>(pub &'a [KeptFile]);

impl Sets for AllKept<'_> {
    fn len(&self) -> usize {
        self.0.len()
    }

    fn bytes(&self, item: usize) -> u64 {
        self.0[item].text().len() as u64
    }

    fn slowness(&self, _: usize) -> Slowness {
        Slowness::default()
    }

    fn features(&mut self, item: usize, into: &mut Vec<Feature>) -> io::Result<()> {
        into.clear();
        into.extend_from_slice(self.0[item].features.as_slice());
        Ok(())
    }
}

/// Maximum number of further inputs that are kept because of one feature that they have reached,
/// but that the kept files, run together at the end, do not reach.
const MOST: usize = 8;

/// All inputs of the corpus that do not fail; those that are not kept can be added to the kept
/// files later.
pub(super) struct Reserve<'a> {
    contents: &'a Contents,
    /// Numbers of the inputs that do not fail, ascending.
    healthy: Vec<usize>,
}

impl<'a> Reserve<'a> {
    /// Makes the reserve (inputs that may still be added to the kept files) of the inputs with the
    /// numbers `healthy`, which do not fail.
    pub fn new(contents: &'a Contents, healthy: Vec<usize>) -> Reserve<'a> {
        Reserve { contents, healthy }
    }

    /// Returns the contents of the corpus.
    pub fn contents(&self) -> &'a Contents {
        self.contents
    }

    /// Returns the numbers of the inputs that do not fail, ascending.
    pub fn healthy(&self) -> &[usize] {
        &self.healthy
    }

    /// Returns the numbers of the inputs that are not among the files `kept`, or are among them
    /// only in trimmed form.
    pub fn excluded(&self, kept: &[KeptFile]) -> Vec<usize> {
        let whole: HashSet<ContentId> = (kept.iter().filter(|file| !file.is_trimmed()))
            .filter_map(|file| ContentId::parse(file.size_before, &file.content))
            .collect();
        let numbers = self.healthy.iter().copied();
        let excluded = numbers.filter(|one| !whole.contains(&self.contents.id(*one)));
        excluded.collect()
    }

    /// Returns the paths of the inputs with the numbers `numbers` (indices among all contents of
    /// the corpus).
    pub fn paths_of(&self, numbers: &[usize]) -> Result<Vec<PathBuf>, CleanError> {
        let paths = numbers.iter().map(|one| self.contents.path(*one));
        Ok(paths.collect::<Result<_, _>>()?)
    }

    /// Returns the numbers of inputs to add to the files `kept`, so that they reach all stack
    /// depths of the corpus: for each depth that no kept file has, the smallest input with this
    /// depth. A kept file that was trimmed does not count, since its depth may have changed. If the
    /// depth of any input is unknown, returns all inputs that are not kept.
    pub fn of_each_stack_depth(&self, kept: &[KeptFile]) -> Result<Vec<usize>, CleanError> {
        let excluded = self.excluded(kept);
        let (mut features, mut of_excluded) = (Vec::new(), Vec::with_capacity(excluded.len()));
        let mut depths = HashSet::new();
        for number in &self.healthy {
            let seen = self.contents.features(*number, &mut features)?;
            let Some(depth) = seen.stack_depth else {
                return Ok(excluded);
            };
            match excluded.get(of_excluded.len()) == Some(number) {
                true => of_excluded.push(depth),
                false => drop(depths.insert(depth)),
            }
        }
        let all = excluded.into_iter().zip(of_excluded);
        let new = all.filter(|(_, depth)| depths.insert(*depth));
        Ok(new.map(|(number, _)| number).collect())
    }

    /// Returns more files to keep, because of `features`: for each of these, up to 8 inputs whose
    /// first run reached it, with the reason `why`. Inputs that are among the files `kept` as they
    /// are (not trimmed) are left out.
    pub fn holders(
        &self,
        features: &Features,
        kept: &[KeptFile],
        why: &str,
    ) -> Result<Vec<KeptFile>, CleanError> {
        let mut found = vec![0; features.len()];
        let mut numbers = BTreeSet::new();
        let mut reached = Vec::new();
        for number in self.excluded(kept) {
            self.contents.features(number, &mut reached)?;
            for feature in &reached {
                if let Ok(at) = features.as_slice().binary_search(feature)
                    && found[at] < MOST
                {
                    found[at] += 1;
                    numbers.insert(number);
                }
            }
        }
        numbers.iter().map(|one| self.keep(*one, why)).collect()
    }

    /// Makes a kept file, which is not trimmed, of the input with the number `number` (index among
    /// all contents of the corpus); `why` is the reason why it is kept.
    pub fn keep(&self, number: usize, why: &str) -> Result<KeptFile, CleanError> {
        Ok(KeptFile {
            whole: true,
            ..KeptFile::of(self.contents, number, why)?
        })
    }
}
