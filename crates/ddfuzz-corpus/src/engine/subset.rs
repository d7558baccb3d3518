//! The choice of the kept files: the files with what they are kept for, and those left out, of
//! which some are taken back.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use super::candidates::Candidates;
use super::choose::{AlreadyCovered, CandidateSource, Choice, Reruns, choose};
use super::totals::CleanTotals;
use super::trimming::TrimRounds;
use super::{CleanError, Doing, Engine, Watcher};
use crate::cover::{Effort, Sets, Slowness};
use crate::measure::{Contents, run_again};
use crate::trim::TrimSettings;
use crate::{ContentId, Feature, FeatureUnion, Features};
use ddfuzz_campaign::identity;
use ddfuzz_store::report::clean::{Cover, LibFuzzerCounts};
use ddfuzz_store::report::size;

/// Contents of the corpus that is added to whose features are in memory at once.
const AT_ONCE: usize = 1024;

impl Engine<'_> {
    /// Chooses and trims the contents that reach all that the corpus reaches. Returns the numbers
    /// of all candidates; `None` where runs may not share processes as they did.
    pub(super) fn cover(
        &self,
        contents: &mut Contents,
        kept: &mut KeptSet,
        watcher: &mut dyn Watcher,
        totals: &mut CleanTotals,
    ) -> Result<Option<Vec<usize>>, CleanError> {
        let (healthy, recovered) = self.sort_out(contents, watcher, totals)?;
        let settings = self.settings();
        let mut pool = Candidates::new(contents, &settings, self.cleaning.repeats, healthy);
        pool.recover(&recovered)?;
        watcher.doing(Doing::Choosing {
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
        self.file(&relapsed, watcher, totals)?;
        self.take(&mut pool, choice, kept, totals)?;
        let fit = pool.healthy.iter().copied();
        let fit = fit.filter(|number| !pool.unfit.contains(number)).collect();
        let trimmed = match self.cleaning.subset {
            true => self.trim(kept, watcher)?,
            false => BTreeSet::new(),
        };
        self.take_slips(trimmed, watcher, totals)?;
        Ok(Some(fit))
    }

    /// Adds the features that the contents of the corpus that is added to reach each time.
    pub(super) fn look_at_onto(
        &self,
        onto: &mut Contents,
        kept: &mut KeptSet,
        watcher: &mut dyn Watcher,
    ) -> Result<(), CleanError> {
        let healthy: Vec<usize> = (0..onto.len())
            .filter(|at| !onto.is_suspicious(*at))
            .collect();
        for number in &healthy {
            kept.onto.push(onto.path(*number)?);
        }
        if onto.places().is_none() {
            return Ok(());
        }
        watcher.doing(Doing::Repeating {
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
        // What comes now and then there is nothing new when the check meets it.
        kept.seen = ever.all();
        kept.covered = union.all();
        Ok(())
    }

    /// Turns the choice into kept files.
    fn take(
        &self,
        pool: &mut Candidates<'_>,
        choice: Choice,
        kept: &mut KeptSet,
        totals: &mut CleanTotals,
    ) -> Result<(), CleanError> {
        for number in &pool.gone {
            totals.gone(
                &pool.contents.path(*number)?,
                pool.contents.id(*number).size(),
            );
        }
        let mut only = BTreeMap::new();
        for (_, item) in &choice.unique_features.sole {
            *only.entry(*item).or_insert(0) += 1;
        }
        let private = choice
            .cover
            .chosen
            .iter()
            .zip(&choice.unique_features.private);
        let private: BTreeMap<usize, usize> =
            private.map(|(item, count)| (*item, *count)).collect();
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
            let mut kept_file = self.keep(pool, item, choice.again.get(&item))?;
            kept_file.only_here = only.get(&item).copied().unwrap_or(0);
            let sometimes = choice.sometimes.get(&item).copied();
            kept_file.whole = sometimes.is_some();
            kept_file.why = why(kept_file.only_here, private.get(&item).copied(), sometimes);
            kept.files.push(kept_file);
        }
        kept.cover = self.cleaning.subset.then_some(Cover {
            weight: choice.cover.weight,
            lower_bound: choice.cover.lower_bound,
            optimal: choice.cover.optimal,
        });
        kept.flaky_files = choice.sometimes.len() as u64;
        kept.universe = Some(choice.universe);
        kept.seen = kept.seen.or(&choice.seen);
        Ok(())
    }

    /// A kept file; its content is in memory where it may be trimmed.
    fn keep(
        &self,
        pool: &mut Candidates<'_>,
        item: usize,
        again: Option<&Reruns>,
    ) -> Result<KeptFile, CleanError> {
        let number = pool.healthy[item];
        let (contents, id) = (&pool.contents, pool.contents.id(number));
        let from = contents.path(number)?;
        let bytes = match self.cleaning.subset {
            true => {
                let mut bytes = Vec::new();
                let read = contents.read(number, &mut bytes);
                read.map_err(|_| CleanError::Changed { path: from.clone() })?;
                Some(bytes)
            }
            false => None,
        };
        let (features, time) = match again {
            Some(again) => (again.steady.clone(), again.time),
            None => {
                let seen = contents.seen(number)?;
                let recovered = pool.recovered.get(&number).cloned();
                (recovered.or(seen.features).unwrap_or_default(), seen.time)
            }
        };
        Ok(KeptFile {
            from,
            content: id.to_string(),
            bytes,
            size_before: id.size(),
            features,
            time,
            ..KeptFile::default()
        })
    }

    /// Trims the kept files, and returns the names of all contents that were trimmed.
    fn trim(
        &self,
        kept: &mut KeptSet,
        watcher: &mut dyn Watcher,
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
            folder: &self.place.trimmed(),
            wanted: &universe.less(&kept.covered),
            seen: &Arc::new(kept.seen.or(&kept.covered)),
            steady: &|texts| self.steady(texts),
            on_slip: &|text, slip, test| self.file_slip_of(text, slip, test),
            stop: self.stop,
        };
        let ran = trims.run(&mut kept.files, watcher)?;
        kept.trim_runs = ran.runs;
        Ok(ran.names)
    }

    /// The features that these contents reach each time.
    fn steady(&self, texts: &[&[u8]]) -> Result<Vec<Reruns>, CleanError> {
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

/// Why a file is kept that alone of the whole corpus reaches `only_here` features, alone of the
/// kept files `private`, and more often than most `sometimes` features that none reaches each time.
fn why(only_here: u64, private: Option<usize>, sometimes: Option<u64>) -> String {
    let features = |count| size::counted(count, "feature");
    match (only_here, private, sometimes) {
        (1.., _, _) => format!(
            "it is the only file of the corpus that reaches {} of its features",
            size::grouped(only_here)
        ),
        (0, Some(private @ 1..), _) => format!(
            "it is the only kept file that reaches {} of its features",
            size::grouped(private as u64)
        ),
        (0, _, Some(count)) => format!(
            "it is among the files that most often reach {} which no file reaches each time",
            features(count)
        ),
        (0, _, None) => "every different file that ends normally is kept".to_owned(),
    }
}

/// Whole microseconds.
pub(super) fn micros(time: Duration) -> u64 {
    u64::try_from(time.as_micros()).unwrap_or(u64::MAX)
}

/// A file that is kept.
#[derive(Clone, Debug, Default)]
pub(super) struct KeptFile {
    /// A file of the corpus with that content.
    pub from: PathBuf,
    /// The hex digits of that content's blake3.
    pub content: String,
    /// Its content now, where that is in memory; else that of the file.
    pub bytes: Option<Vec<u8>>,
    /// Its size before trimming, in bytes.
    pub size_before: u64,
    /// What it reaches each time.
    pub features: Features,
    /// The least CPU time of its runs.
    pub time: Duration,
    /// Features that no other content of the corpus reaches.
    pub only_here: u64,
    /// Whether it is not trimmed: it is kept for features that it does not reach each time, which
    /// trimming could not keep.
    pub whole: bool,
    /// Why it is kept.
    pub why: String,
    /// The claim of the trimming.
    pub claim: Option<String>,
    /// The required features with which trimming removed nothing more.
    pub settled_for: Option<Features>,
}

impl KeptFile {
    /// Its size now, in bytes.
    pub fn size(&self) -> u64 {
        let held = self.bytes.as_ref();
        held.map_or(self.size_before, |bytes| bytes.len() as u64)
    }

    /// Whether it is shorter than the file that it was made of.
    pub fn is_trimmed(&self) -> bool {
        self.size() < self.size_before
    }

    /// What it holds; nothing where that is not in memory.
    pub fn text(&self) -> &[u8] {
        self.bytes.as_deref().unwrap_or_default()
    }
}

/// All kept files, and the features that they have to reach together.
#[derive(Debug, Default)]
pub(super) struct KeptSet {
    /// The files.
    pub files: Vec<KeptFile>,
    /// Features that the corpus reaches each time; `None` where the target reports no coverage.
    pub universe: Option<Features>,
    /// Features of the corpus that is added to.
    pub covered: Features,
    /// The contents of that corpus.
    pub onto: Vec<PathBuf>,
    /// How many of the files are kept for features that no content reaches each time.
    pub flaky_files: u64,
    /// Features that any run reached.
    pub seen: Features,
    /// How good the subset is.
    pub cover: Option<Cover>,
    /// What the target's own fuzzer counts.
    pub own_count: Option<LibFuzzerCounts>,
    /// The name of the journal that knows what the contents reach.
    pub journal: &'static str,
    /// Runs that trimming took.
    pub trim_runs: u64,
}

/// The kept files as candidates for another cover.
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

/// Contents that are taken back at most for each feature that the check misses.
const MOST: usize = 8;

/// All contents that do not fail; those that are not kept can be taken back.
pub(super) struct Reserve<'a> {
    contents: &'a Contents,
    /// Their numbers.
    healthy: Vec<usize>,
}

impl<'a> Reserve<'a> {
    /// These of the contents.
    pub fn new(contents: &'a Contents, healthy: Vec<usize>) -> Reserve<'a> {
        Reserve { contents, healthy }
    }

    /// The numbers of those that were left out or trimmed.
    pub fn excluded(&self, kept: &[KeptFile]) -> Vec<usize> {
        let whole: HashSet<ContentId> = (kept.iter().filter(|file| !file.is_trimmed()))
            .filter_map(|file| ContentId::parse(file.size_before, &file.content))
            .collect();
        let numbers = self.healthy.iter().copied();
        let excluded = numbers.filter(|one| !whole.contains(&self.contents.id(*one)));
        excluded.collect()
    }

    /// The files of these.
    pub fn paths_of(&self, numbers: &[usize]) -> Result<Vec<PathBuf>, CleanError> {
        let paths = numbers.iter().map(|one| self.contents.path(*one));
        Ok(paths.collect::<Result<_, _>>()?)
    }

    /// The content with these bytes, as one that is kept; `None` where it is none of these.
    pub fn take_back(&self, bytes: &[u8], why: &str) -> Result<Option<KeptFile>, CleanError> {
        let number = self.contents.find(&ContentId::of(bytes));
        let number = number.filter(|number| self.healthy.binary_search(number).is_ok());
        number.map(|number| self.keep(number, why)).transpose()
    }

    /// For each of these features some of the left-out or trimmed contents that reached it.
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

    fn keep(&self, number: usize, why: &str) -> Result<KeptFile, CleanError> {
        let (id, seen) = (self.contents.id(number), self.contents.seen(number)?);
        Ok(KeptFile {
            from: self.contents.path(number)?,
            content: id.to_string(),
            size_before: id.size(),
            features: seen.features.unwrap_or_default(),
            time: seen.time,
            why: why.to_owned(),
            whole: true,
            ..KeptFile::default()
        })
    }
}
