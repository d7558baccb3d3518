//! The final check: runs the written files again and compares their features with those of the
//! corpus, and has the target's own libFuzzer count the coverage before and after.

use std::fmt::Debug;
use std::path::PathBuf;
use std::sync::atomic::AtomicBool;

use super::subset::{KeptSet, Reserve};
use super::{CleanError, CleanPhase, Engine};
use crate::measure::{Files, run_again};
use crate::{FeatureUnion, Features};
use ddfuzz_campaign::Screen;
use ddfuzz_store::report::clean::{LibFuzzerCounts, LibFuzzerCoverage};

/// Maximum number of rounds in which the final check of a cleanup runs all written files: a single
/// round may miss a flaky feature.
const TRIES: u32 = 3;

/// Result of the final check of a cleanup, which runs the written files again.
#[derive(Debug, Default)]
pub(super) struct Checked {
    /// Features that the written files reached in the final check, together with the files of the
    /// `--onto` corpus; flaky ones that only some of the earlier runs reached are left out.
    pub reached: Features,
    /// Features that the corpus or the `--onto` corpus reaches in every run, and that no round of
    /// the check reached.
    pub missing: Features,
    /// Features that every round of the check reached, and no run before it: neither of the corpus
    /// nor of the `--onto` corpus.
    pub gained: Features,
    /// Number of runs that the final check of the written files made.
    pub runs: u64,
}

impl Engine<'_> {
    /// Makes the final check of a cleanup: runs the `written` (kept) files and those of the
    /// `--onto` corpus, and compares the features that they reach together with those that the
    /// whole corpus reaches in every run. Repeats this, in up to three rounds, until there is no
    /// difference. Runs nothing and returns an empty result if the target reports no coverage.
    pub(super) fn check(
        &self,
        kept: &KeptSet,
        written: &[PathBuf],
        screen: &mut dyn Screen<CleanPhase>,
    ) -> Result<Checked, CleanError> {
        let Some(universe) = &kept.universe else {
            return Ok(Checked::default());
        };
        let wanted = universe.or(&kept.covered);
        let mut paths = written.to_vec();
        paths.extend_from_slice(&kept.onto);
        screen.progress(&CleanPhase::Checking {
            files: paths.len() as u64,
        });
        let files = Files(&paths);
        let mut checked = Checked::default();
        // A new feature counts if every round reaches it.
        let mut new: Option<Features> = None;
        for round in 0..TRIES {
            let reached = self.reached(&files, self.cleaning.repeats + round)?;
            checked.runs += paths.len() as u64;
            let unknown = reached.less(&wanted).less(&kept.seen);
            let steady = new.map_or(unknown.clone(), |new| new.and(&unknown));
            checked.reached = checked.reached.or(&reached.and(&wanted));
            checked.missing = wanted.less(&checked.reached);
            let is_equal = checked.missing.is_empty() && steady.is_empty();
            new = Some(steady);
            if is_equal {
                break;
            }
        }
        checked.gained = new.unwrap_or_default();
        checked.reached = checked.reached.or(&checked.gained);
        Ok(checked)
    }

    /// Runs each of `files` once, in an order that depends on `round`, and returns the union of the
    /// features that they reach.
    fn reached(&self, files: &Files<'_>, round: u32) -> Result<Features, CleanError> {
        let mut union = FeatureUnion::default();
        let whole = run_again(&self.settings(), files, round, &mut |_, seen| {
            if let Ok(seen) = seen
                && let Some(features) = &seen.features
            {
                union.add(features);
            }
            Ok(())
        })?;
        match whole {
            true => Ok(union.all()),
            false => Err(CleanError::Interrupted),
        }
    }
}

/// Maximum number of files that the target's own fuzzer (such as libFuzzer) merges. With more files
/// it is not asked, since it holds all of them in memory.
const MOST: usize = 100_000;

/// Merges corpora by the target's own fuzzer, which also counts their coverage. Its features may
/// differ from ours: libFuzzer also counts stack depth.
pub trait FuzzerMerge: Debug + Send + Sync {
    /// Returns true if the fuzzer counts nothing but the features of [`Features`](crate::Features)
    /// and the depth of the stack, and runs report that depth
    /// ([`Observation::stack_depth`](crate::journal::Observation::stack_depth)).
    fn counts_stack_depth_only(&self) -> bool;

    /// Lets the target's own fuzzer merge: runs the files of both lists once, those of `kept`
    /// first, and returns the coverage of all of them, and which of `others` add to that of the
    /// files before.
    ///
    /// # Errors
    /// A message why it could not count or merge; also when `stop` turns true.
    fn merge(
        &self,
        kept: &[PathBuf],
        others: &[PathBuf],
        stop: &AtomicBool,
    ) -> Result<MergeOutcome, String>;
}

/// Result of a merge by the target's own fuzzer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MergeOutcome {
    /// Coverage that all merged files reach together, as the target's own fuzzer counts it.
    pub all: LibFuzzerCoverage,
    /// Indices, in the list of files that are not kept, of the files that the merge adds because
    /// they add coverage. Together with these, the kept files reach the coverage of all merged
    /// files.
    pub added: Vec<usize>,
}

impl Engine<'_> {
    /// Has the target's own fuzzer merge the corpus into the `written` files, and also keeps and
    /// writes the files that it adds (to `kept` and `written`). There is one merge only: where
    /// coverage is flaky, each further merge would add some files.
    pub(super) fn count_by_own_fuzzer(
        &self,
        kept: &mut KeptSet,
        reserve: &Reserve<'_>,
        written: &mut Vec<PathBuf>,
        screen: &mut dyn Screen<CleanPhase>,
    ) -> Result<(), CleanError> {
        let Some(own_fuzzer) = self.cleaning.own_fuzzer.as_deref() else {
            return Ok(());
        };
        let mut own = LibFuzzerCounts::default();
        let others = match own_fuzzer.counts_stack_depth_only() && kept.is_steady() {
            true => reserve.of_each_stack_depth(&kept.files)?,
            false => reserve.excluded(&kept.files),
        };
        let files = others.len() + written.len() + kept.onto.len();
        if files == 0 {
            return Ok(());
        }
        if files > MOST {
            own.why_not = Some(format!("it is not asked about more than {MOST} files"));
            kept.own_count = Some(own);
            return Ok(());
        }
        screen.progress(&CleanPhase::Counting {
            files: files as u64,
        });
        let paths = reserve.paths_of(&others)?;
        let merged = own_fuzzer.merge(&all_of(written, kept), &paths, self.stop);
        if self.settings().stopped() {
            return Err(CleanError::Interrupted);
        }
        match merged {
            Ok(merged) => {
                own.all = Some(merged.all);
                own.added = merged.added.len() as u64;
                let why = "libFuzzer's own merge adds it to the other kept files";
                for at in merged.added {
                    kept.files.push(reserve.keep(others[at], why)?);
                }
                if own.added > 0 {
                    *written = self.write(kept)?;
                }
            }
            Err(why) => own.why_not = Some(why),
        }
        kept.own_count = Some(own);
        Ok(())
    }
}

/// Returns the paths of the files to check: the written (kept) files, followed by the files of the
/// `--onto` corpus that do not fail, which are listed in `kept`.
fn all_of(written: &[PathBuf], kept: &KeptSet) -> Vec<PathBuf> {
    [written, &kept.onto[..]].concat()
}
