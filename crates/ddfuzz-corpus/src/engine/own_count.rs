//! Has the target's own libFuzzer count the coverage of the corpus, and also keeps files that reach
//! features which only libFuzzer counts, such as a stack depth.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::fmt::Debug;
use std::path::PathBuf;
use std::sync::atomic::AtomicBool;

use super::subset::{KeptFile, KeptSet, Reserve};
use super::{CleanError, CleanPhase, Engine};
use crate::Features;
use ddfuzz_campaign::Screen;
use ddfuzz_store::report::clean::LibFuzzerCoverage;

/// Maximum number of files that the target's own fuzzer (such as libFuzzer) is asked to run, since
/// the fuzzer holds all of them in memory. With more files it does not count.
const MOST: usize = 100_000;

/// The target's own fuzzer, which counts coverage by itself. Its features may differ from those of
/// ddfuzz: libFuzzer also counts stack depth.
pub trait OwnFuzzer: Debug + Send + Sync {
    /// Returns true if the fuzzer counts nothing but the features of [`Features`] and the depth of
    /// the stack, and runs report that depth
    /// ([`Observation::stack_depth`](crate::journal::Observation::stack_depth)); else false.
    fn counts_stack_depth_only(&self) -> bool;

    /// Lets the fuzzer run `files` once each, in this order and in one process, and returns for
    /// each file the numbers of features and edges that no file before it has reached.
    ///
    /// # Errors
    /// A message why the fuzzer could not count; also when `stop` turns true.
    fn merge(&self, files: &[PathBuf], stop: &AtomicBool) -> Result<Vec<NewCoverage>, String>;

    /// Lets the fuzzer run `files` once each, in this order and in one process, and returns for
    /// each file the numbers of all features that it reaches, ascending: first features of hit
    /// counters, then the feature of its stack depth. A fuzzer that is too old returns the new
    /// features only.
    ///
    /// # Errors
    /// As [`OwnFuzzer::merge`].
    fn features(&self, files: &[PathBuf], stop: &AtomicBool) -> Result<Vec<Vec<u64>>, String>;
}

/// Amount of coverage that a file reaches and no file run before it has reached, as counted by the
/// target's own fuzzer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NewCoverage {
    /// Number of features that no file run before has reached.
    pub features: u64,
    /// Number of edges that no file run before has reached.
    pub edges: u64,
}

/// Outcome of a comparison of the corpus with the kept files by the target's own fuzzer.
struct Compared {
    /// Coverage of the corpus and the kept files together.
    all: LibFuzzerCoverage,
    /// Numbers of the inputs of the corpus that must be added to the kept files to reach all of
    /// this coverage.
    added: Vec<usize>,
}

impl Engine<'_> {
    /// Has the target's own fuzzer count the coverage of the corpus, and adds files to `kept` until
    /// these reach as much by this count as the corpus. Makes each comparison once only: where
    /// coverage is flaky, each further one would add some files.
    pub(super) fn count_by_own_fuzzer(
        &self,
        kept: &mut KeptSet,
        reserve: &Reserve<'_>,
        screen: &mut dyn Screen<CleanPhase>,
    ) -> Result<(), CleanError> {
        let Some(own_fuzzer) = self.cleaning.own_fuzzer.as_deref() else {
            return Ok(());
        };
        let depth_only = own_fuzzer.counts_stack_depth_only() && kept.is_steady();
        let is_plain = kept.onto.is_empty() && !kept.files.iter().any(KeptFile::is_trimmed);
        let mut compared = match depth_only && is_plain {
            true => self.compare_depths(own_fuzzer, kept, reserve, screen)?,
            false => None,
        };
        if compared.is_none() {
            let others = match depth_only && !is_plain && kept.once_per_process.is_empty() {
                true => reserve.of_each_stack_depth(&kept.files)?,
                false => reserve.excluded(&kept.files),
            };
            compared = self.merge(own_fuzzer, kept, reserve, others, screen)?;
        }
        let mut own = kept.own_count.take().unwrap_or_default();
        match compared {
            None => return Ok(()),
            Some(Err(why)) => (own.all, own.why_not) = (None, Some(why)),
            Some(Ok(compared)) => {
                own.all = Some(compared.all);
                own.added += compared.added.len() as u64;
                let why = "it reaches what only libFuzzer counts, and no other kept file does";
                for number in compared.added {
                    kept.files.push(reserve.keep(number, why)?);
                }
            }
        }
        kept.own_count = Some(own);
        Ok(())
    }

    /// Compares the stack depths of the corpus with those of the kept files, for a libFuzzer that
    /// counts nothing but depths in addition to the features of ddfuzz. Of each depth, libFuzzer
    /// runs only the smallest input. The depth of an input is unsure if its first run reached code
    /// that runs once per process, which may have made the stack deeper; libFuzzer runs all these
    /// inputs, both before and after the others. Returns `None` if a depth is unknown, too many are
    /// unsure, or libFuzzer counts other features (apart from depths) than ddfuzz.
    fn compare_depths(
        &self,
        own_fuzzer: &dyn OwnFuzzer,
        kept: &KeptSet,
        reserve: &Reserve<'_>,
        screen: &mut dyn Screen<CleanPhase>,
    ) -> Result<Option<Result<Compared, String>>, CleanError> {
        let depths = reserve.stack_depths(&kept.files, &kept.once_per_process)?;
        let Some(StackDepths { of_each, unsure }) = depths else {
            return Ok(None);
        };
        let inputs = [&unsure[..], &of_each, &unsure].concat();
        let numbers: Vec<usize> = inputs.iter().map(|input| input.number).collect();
        let paths = reserve.paths_of(&numbers)?;
        let run = |stop: &_| own_fuzzer.features(&paths, stop);
        let told = match self.ask(paths.len(), run, screen)? {
            Err(why) => return Ok(Some(Err(why))),
            Ok(told) => told,
        };
        let Some(steps) = depth_features(&told, &inputs, unsure.len()) else {
            return Ok(None);
        };
        let (mut covered, mut all) = (HashSet::new(), BTreeMap::<u64, usize>::new());
        let steps = inputs.iter().zip(steps);
        for (input, step) in steps.filter_map(|(input, step)| Some((input, step?))) {
            let smallest = all.entry(step).or_insert(input.number);
            *smallest = input.number.min(*smallest);
            if input.is_kept {
                covered.insert(step);
            }
        }
        let universe = kept.universe.clone().unwrap_or_default();
        let missing = all.iter().filter(|(step, _)| !covered.contains(step));
        let added: BTreeSet<usize> = missing.map(|(_, number)| *number).collect();
        Ok(Some(Ok(Compared {
            all: LibFuzzerCoverage {
                cov: universe.edges(),
                ft: (universe.len() + all.len()) as u64,
            },
            added: added.into_iter().collect(),
        })))
    }

    /// Has the target's own fuzzer run the kept files, then the inputs `others`. Returns the
    /// coverage of all of them, and those of `others` that reach a feature which no file before
    /// them has reached. `None` if there is no file to run.
    fn merge(
        &self,
        own_fuzzer: &dyn OwnFuzzer,
        kept: &mut KeptSet,
        reserve: &Reserve<'_>,
        others: Vec<usize>,
        screen: &mut dyn Screen<CleanPhase>,
    ) -> Result<Option<Result<Compared, String>>, CleanError> {
        let mut paths = match kept.files.iter().any(KeptFile::is_trimmed) {
            true => self.write(kept)?,
            false => kept.files.iter().map(|file| file.from.clone()).collect(),
        };
        paths.extend_from_slice(&kept.onto);
        let first = paths.len();
        paths.extend(reserve.paths_of(&others)?);
        if paths.is_empty() {
            return Ok(None);
        }
        let run = |stop: &_| own_fuzzer.merge(&paths, stop);
        let told = self.ask(paths.len(), run, screen)?;
        Ok(Some(told.map(|told| {
            let is_new = |at: &usize| told[first + at].features > 0;
            let added = (0..others.len()).filter(is_new).map(|at| others[at]);
            Compared {
                all: LibFuzzerCoverage {
                    cov: told.iter().map(|new| new.edges).sum(),
                    ft: told.iter().map(|new| new.features).sum(),
                },
                added: added.collect(),
            }
        })))
    }

    /// Calls `run`, by which the target's own fuzzer runs `files` files, and returns its result, or
    /// a message if these are too many to ask about. Fails if the user has stopped the cleanup.
    fn ask<T>(
        &self,
        files: usize,
        run: impl FnOnce(&AtomicBool) -> Result<T, String>,
        screen: &mut dyn Screen<CleanPhase>,
    ) -> Result<Result<T, String>, CleanError> {
        if files > MOST {
            return Ok(Err(format!("it is not asked about more than {MOST} files")));
        }
        let phase = CleanPhase::Counting {
            files: files as u64,
        };
        screen.progress(&phase);
        let told = run(self.stop);
        match self.settings().stopped() {
            true => Err(CleanError::Interrupted),
            false => Ok(told),
        }
    }
}

/// If more than one in this many inputs have an unsure stack depth (it may be greater in their
/// first run), all inputs are run by libFuzzer, instead of one for each depth.
const UNSURE_DIVISOR: usize = 4;

/// Inputs of the corpus that together have all stack depths of the corpus.
struct StackDepths {
    /// For each stack depth, in ascending order, the smallest input whose run has this depth.
    of_each: Vec<DepthInput>,
    /// Inputs whose stack may have been deeper in their first run than in other runs, those of kept
    /// files first.
    unsure: Vec<DepthInput>,
}

/// An input of the corpus that libFuzzer runs for the depth of its stack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct DepthInput {
    /// Index of the input among all contents of the corpus.
    number: usize,
    /// Number of features that the input's first run has reached.
    features: usize,
    /// Whether the input's first run has recorded a stack depth; if not, libFuzzer has no feature
    /// for the depth.
    is_deep: bool,
    /// Whether a kept file has the stack depth of this input; if the depth is unsure, whether the
    /// input itself is kept.
    is_kept: bool,
}

/// Returns, for each of the `inputs`, the number of the libFuzzer feature that stands for its stack
/// depth (`None` if it has none). `told`: for each input, the numbers of all features that
/// libFuzzer has reported. The first and the last `unsure` inputs have an unsure depth. Returns
/// `None` for all if, for any other input, the reported features do not fit those that ddfuzz has
/// counted.
fn depth_features(
    told: &[Vec<u64>],
    inputs: &[DepthInput],
    unsure: usize,
) -> Option<Vec<Option<u64>>> {
    let sure = unsure..inputs.len() - unsure;
    if sure.is_empty() || told.len() != inputs.len() {
        return None;
    }
    // Numbers of depths come behind those of all counters.
    let mut of_counters = None;
    for (told, input) in told[sure.clone()].iter().zip(&inputs[sure]) {
        if told.len() != input.features + usize::from(input.is_deep) {
            return None;
        }
        of_counters = told[..input.features].last().copied().max(of_counters);
    }
    let depth_of = |(told, input): (&Vec<u64>, &DepthInput)| {
        let depth = told
            .last()
            .copied()
            .filter(|last| Some(*last) > of_counters);
        (depth.is_some() || !input.is_deep).then_some(depth)
    };
    told.iter().zip(inputs).map(depth_of).collect()
}

impl Reserve<'_> {
    /// Returns inputs that together have all stack depths of the corpus. The files `kept`, which
    /// must not be trimmed, are a part of the corpus. Inputs whose first run has reached some of
    /// the features `once` (of code that runs once per process) have an unsure depth. `None` if the
    /// depth of any input is unknown, or too many depths are unsure.
    fn stack_depths(
        &self,
        kept: &[KeptFile],
        once: &Features,
    ) -> Result<Option<StackDepths>, CleanError> {
        let mut excluded = self.excluded(kept).into_iter().peekable();
        let (mut of_each, mut unsure) = (BTreeMap::<u64, DepthInput>::new(), Vec::new());
        let mut features = Vec::new();
        for number in self.healthy().iter().copied() {
            let seen = self.contents().features(number, &mut features)?;
            let Some(depth) = seen.stack_depth else {
                return Ok(None);
            };
            let input = DepthInput {
                number,
                features: features.len(),
                is_deep: depth > 0,
                is_kept: excluded.next_if_eq(&number).is_none(),
            };
            if !once.is_empty() && features.iter().any(|one| once.contains(*one)) {
                unsure.push(input);
                continue;
            }
            let smallest = of_each.entry(depth).or_insert(input);
            smallest.is_kept |= input.is_kept;
        }
        unsure.sort_by_key(|input| (!input.is_kept, input.number));
        let is_sure = unsure.len() * UNSURE_DIVISOR <= self.healthy().len();
        Ok(is_sure.then(|| StackDepths {
            of_each: of_each.into_values().collect(),
            unsure,
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn input(number: usize, features: usize, is_deep: bool) -> DepthInput {
        DepthInput {
            number,
            features,
            is_deep,
            is_kept: false,
        }
    }

    #[test]
    fn the_last_feature_of_a_deep_run_is_its_depth() {
        let told = [vec![1, 9, 80], vec![1, 82], vec![80], vec![1, 9]];
        let inputs = [(2, true), (1, true), (0, true), (2, false)];
        let inputs = inputs.map(|(features, is_deep)| input(0, features, is_deep));
        let found = Some(vec![Some(80), Some(82), Some(80), None]);
        assert_eq!(depth_features(&told, &inputs, 0), found);
        assert_eq!(depth_features(&told[..3], &inputs, 0), None);
        assert_eq!(depth_features(&[], &[], 0), None);
    }

    #[test]
    fn depths_tell_nothing_where_libfuzzer_counts_something_else() {
        let told = [vec![1, 9, 80], vec![1, 11, 82]];
        let by = |first, second| {
            let inputs = [input(0, first, true), input(1, second, true)];
            depth_features(&told, &inputs, 0)
        };
        assert_eq!(by(2, 2), Some(vec![Some(80), Some(82)]));
        assert_eq!(by(3, 2), None);
        assert_eq!(by(2, 1), None);
        // It has told of the depth of one run as of a counter of another.
        let told = [vec![1, 9, 80], vec![80, 82, 90]];
        let inputs = [input(0, 2, true), input(1, 2, true)];
        assert_eq!(depth_features(&told, &inputs, 0), None);
    }

    #[test]
    fn inputs_of_unsure_depth_are_run_before_and_after_the_others() {
        let inputs = [input(7, 5, true), input(0, 2, true), input(7, 5, true)];
        let told = [vec![1, 9, 30, 85], vec![1, 9, 80], vec![1, 81]];
        let found = Some(vec![Some(85), Some(80), Some(81)]);
        assert_eq!(depth_features(&told, &inputs, 1), found);
        let told = [vec![7], vec![1, 9, 80], vec![1, 82]];
        assert_eq!(depth_features(&told, &inputs, 1), None);
    }
}
