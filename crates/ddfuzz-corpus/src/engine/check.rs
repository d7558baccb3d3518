//! The independent check: runs again what was written, and has the target's own libFuzzer count
//! the coverage of the corpus before and after.

use std::fmt::Debug;
use std::path::PathBuf;
use std::sync::atomic::AtomicBool;

use super::subset::{KeptFile, KeptSet, Reserve};
use super::{CleanError, Doing, Engine, Watcher};
use crate::measure::{Files, run_again};
use crate::{FeatureUnion, Features};
use ddfuzz_store::report::clean::{LibFuzzerCounts, LibFuzzerCoverage};

/// Rounds of runs: a feature that is not reached each time may be missing in one of them.
const TRIES: u32 = 3;

/// What the written files reach.
#[derive(Debug, Default)]
pub(super) struct Checked {
    /// Their features, as far as these count.
    pub reached: Features,
    /// Features that they should reach and do not.
    pub missing: Features,
    /// Features that they reach each time and no run before did.
    pub gained: Features,
    /// Runs that it took.
    pub runs: u64,
}

impl Engine<'_> {
    /// Runs the `written` files, with those of the corpus that is added to, and compares their
    /// features with those of the corpus, apart from features that are not reached each time.
    pub(super) fn check(
        &self,
        kept: &KeptSet,
        written: &[PathBuf],
        watcher: &mut dyn Watcher,
    ) -> Result<Checked, CleanError> {
        let Some(universe) = &kept.universe else {
            return Ok(Checked::default());
        };
        let wanted = universe.or(&kept.covered);
        let mut paths = written.to_vec();
        paths.extend_from_slice(&kept.onto);
        watcher.doing(Doing::Checking {
            files: paths.len() as u64,
        });
        let files = Files(&paths);
        let mut checked = Checked::default();
        // What no run has reached before counts where it comes each time.
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

    /// The features of these files together, in one run of each.
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

/// Files that the target's own fuzzer can merge: it holds them all in memory.
const MOST: usize = 100_000;

/// A fuzzer's own merge, and its count of what a corpus reaches. Its features may be
/// more than counters: libFuzzer also counts the depth of the stack.
pub trait Ruler: Debug + Send + Sync {
    /// Runs the files of both lists once, those of `kept` first.
    ///
    /// # Errors
    /// Why it could not count or merge, as a message; also when `stop` turned true.
    fn merge(
        &self,
        kept: &[PathBuf],
        others: &[PathBuf],
        stop: &AtomicBool,
    ) -> Result<Merged, String>;
}

/// The result of a fuzzer's own merge.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Merged {
    /// The count of all files of both lists.
    pub all: LibFuzzerCoverage,
    /// The contents of the other files that it adds: with them the kept files count as much as all
    /// do, in this run.
    pub added: Vec<Vec<u8>>,
}

impl Engine<'_> {
    /// Asks the target's own fuzzer which other files it adds to the `written` ones, and keeps and
    /// writes these, too. One merge is what `cargo fuzz cmin` makes of a corpus; where coverage is
    /// flaky, each further one would add some files, and take as long.
    pub(super) fn count_by_its_own(
        &self,
        kept: &mut KeptSet,
        reserve: &Reserve<'_>,
        written: &mut Vec<PathBuf>,
        watcher: &mut dyn Watcher,
    ) -> Result<(), CleanError> {
        let Some(ruler) = self.cleaning.ruler.as_deref() else {
            return Ok(());
        };
        let mut own = LibFuzzerCounts::default();
        let excluded = reserve.paths_of(&reserve.excluded(&kept.files))?;
        let files = excluded.len() + written.len() + kept.onto.len();
        if files == 0 {
            return Ok(());
        }
        if files > MOST {
            own.why_not = Some(format!("it is not asked about more than {MOST} files"));
            kept.own_count = Some(own);
            return Ok(());
        }
        watcher.doing(Doing::Counting {
            files: files as u64,
        });
        let merge = |kept: &[PathBuf], others: &[PathBuf], why_not: &mut Option<String>| {
            let merged = ruler.merge(kept, others, self.stop);
            if self.settings().stopped() {
                return Err(CleanError::Interrupted);
            }
            Ok(merged.map_err(|why| *why_not = Some(why)).ok())
        };
        if let Some(merged) = merge(&all_of(written, kept), &excluded, &mut own.why_not)? {
            own.before = Some(merged.all);
            own.after = Some(merged.all);
            let more = taken_back(reserve, &merged.added)?;
            own.added = more.len() as u64;
            let are_all = more.len() == merged.added.len();
            if !more.is_empty() {
                kept.files.extend(more);
                *written = self.write(kept)?;
            }
            if !are_all {
                // libFuzzer reads the first megabyte of a file only.
                let alone = merge(&all_of(written, kept), &[], &mut own.why_not)?;
                own.after = alone.map(|merged| merged.all);
            }
        }
        kept.own_count = Some(own);
        Ok(())
    }
}

/// The files that are written and those that they are added to.
fn all_of(written: &[PathBuf], kept: &KeptSet) -> Vec<PathBuf> {
    [written, &kept.onto[..]].concat()
}

fn taken_back(reserve: &Reserve<'_>, contents: &[Vec<u8>]) -> Result<Vec<KeptFile>, CleanError> {
    let mut all = Vec::new();
    for bytes in contents {
        let why = "libFuzzer's own merge adds it to the other kept files";
        all.extend(reserve.take_back(bytes, why)?);
    }
    Ok(all)
}
