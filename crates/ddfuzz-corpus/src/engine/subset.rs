//! The subset by coverage.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use super::books::Books;
use super::choose::{Again, Choice, Elsewhere, Source, choose};
use super::keeping::{Keeping, Kept};
use super::pool::Pool;
use super::trimming::Trims;
use super::{CleanError, Doing, Engine, Watcher};
use crate::cover::Effort;
use crate::measure::{Contents, run_again};
use crate::trim::Trimming;
use crate::{Features, Union};
use ddfuzz_campaign::identity;
use ddfuzz_store::report::clean::Cover;
use ddfuzz_store::report::size;

/// Of so many contents of the corpus that is added to, what they reach is in memory at once.
const AT_ONCE: usize = 1024;

impl Engine<'_> {
    /// Chooses and trims the contents that reach all that the corpus does. Gives the numbers of all
    /// that may be kept; `None` where runs may not share processes as they did.
    pub(super) fn cover(
        &self,
        contents: &mut Contents,
        kept: &mut Kept,
        watcher: &mut dyn Watcher,
        books: &mut Books,
    ) -> Result<Option<Vec<usize>>, CleanError> {
        let (healthy, recovered) = self.sort_out(contents, watcher, books)?;
        let settings = self.settings();
        let mut pool = Pool::new(contents, &settings, self.cleaning.repeats, healthy);
        pool.recover(&recovered)?;
        watcher.doing(Doing::Choosing {
            contents: pool.healthy.len() as u64,
        });
        let elsewhere = Elsewhere {
            covered: &kept.covered,
            seen: &kept.seen,
        };
        let effort = Effort::among(pool.healthy.len());
        let Some(choice) = choose(&mut pool, elsewhere, &effort)? else {
            return Ok(None);
        };
        let relapsed = std::mem::take(&mut pool.relapsed);
        self.file(&relapsed, watcher, books)?;
        self.take(&mut pool, choice, kept, books)?;
        let fit = pool.healthy.iter().copied();
        let fit = fit.filter(|number| !pool.unfit.contains(number)).collect();
        let trimmed = match self.cleaning.subset {
            true => self.trim(kept, watcher)?,
            false => BTreeSet::new(),
        };
        self.take_slips(trimmed, watcher, books)?;
        Ok(Some(fit))
    }

    /// Takes in what the corpus reaches that is added to: what its contents do each time.
    pub(super) fn look_at_onto(
        &self,
        onto: &mut Contents,
        kept: &mut Kept,
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
        let (mut union, mut ever) = (Union::default(), Union::default());
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

    /// Takes what was chosen.
    fn take(
        &self,
        pool: &mut Pool<'_>,
        choice: Choice,
        kept: &mut Kept,
        books: &mut Books,
    ) -> Result<(), CleanError> {
        for number in &pool.gone {
            books.gone(
                &pool.contents.path(*number)?,
                pool.contents.id(*number).size(),
            );
        }
        let mut only = BTreeMap::new();
        for (_, item) in &choice.held.sole {
            *only.entry(*item).or_insert(0) += 1;
        }
        let private = choice.cover.chosen.iter().zip(&choice.held.private);
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
            books.spread.sizes_before.add(pool.bytes(item));
            books.spread.times_before.add(micros(*time));
        }
        for item in items {
            let mut keeping = self.keep(pool, item, choice.again.get(&item))?;
            keeping.only_here = only.get(&item).copied().unwrap_or(0);
            let sometimes = choice.sometimes.get(&item).copied();
            keeping.whole = sometimes.is_some();
            keeping.why = why(keeping.only_here, private.get(&item).copied(), sometimes);
            kept.files.push(keeping);
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

    /// A content that is kept; in memory where it may be trimmed.
    fn keep(
        &self,
        pool: &mut Pool<'_>,
        item: usize,
        again: Option<&Again>,
    ) -> Result<Keeping, CleanError> {
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
        Ok(Keeping {
            from,
            content: id.to_string(),
            bytes,
            size_before: id.size(),
            features,
            time,
            ..Keeping::default()
        })
    }

    /// Trims what is kept, and gives the names of all contents that were trimmed.
    fn trim(
        &self,
        kept: &mut Kept,
        watcher: &mut dyn Watcher,
    ) -> Result<BTreeSet<String>, CleanError> {
        let Some(trim) = &self.cleaning.trim else {
            return Ok(BTreeSet::new());
        };
        let cleaning = self.cleaning;
        let trimming = Trimming {
            search: trim.search.clone(),
            budget_tests: Some(trim.tests),
            budget_time: trim.time,
            build: Some(identity(&cleaning.target)?.to_string()),
            ..Trimming::of_target(cleaning.target.clone(), cleaning.way)
        };
        let universe = kept.universe.clone().unwrap_or_default();
        let trims = Trims {
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

    /// What these contents reach each time.
    fn steady(&self, texts: &[&[u8]]) -> Result<Vec<Again>, CleanError> {
        let mut all: Vec<Option<Again>> = vec![None; texts.len()];
        for round in 0..self.cleaning.repeats {
            let whole = run_again(&self.settings(), &texts, round, &mut |number, seen| {
                let Ok(seen) = seen else { return Ok(()) };
                let features = match seen.suspicious {
                    true => Features::default(),
                    false => seen.features.unwrap_or_default(),
                };
                let again = all[number].get_or_insert_with(|| Again {
                    steady: features.clone(),
                    time: Duration::MAX,
                    ..Again::default()
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
