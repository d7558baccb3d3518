//! The count that the target's own libFuzzer makes of a corpus, before and after.

use std::fmt::Debug;
use std::path::PathBuf;
use std::sync::atomic::AtomicBool;

use super::keeping::{Keeping, Kept};
use super::reserve::Reserve;
use super::{CleanError, Doing, Engine, Watcher};
use ddfuzz_store::report::clean::{Counted, OwnCount};

/// It is given a directory with a link to each file, and holds them all in memory.
const MOST: usize = 100_000;

/// A fuzzer's own count of what a corpus reaches. It may tell more apart than its counters do:
/// libFuzzer counts how deep the stack was, too.
pub trait Ruler: Debug + Send + Sync {
    /// What it counts of these files.
    ///
    /// # Errors
    /// Why it could not count, for people; also when `stop` turned true.
    fn count(&self, files: &[PathBuf], stop: &AtomicBool) -> Result<Counted, String>;

    /// The contents of those of `others` that its own merge adds to `kept`.
    ///
    /// # Errors
    /// As [`count`](Ruler::count).
    fn merge(
        &self,
        kept: &[PathBuf],
        others: &[PathBuf],
        stop: &AtomicBool,
    ) -> Result<Vec<Vec<u8>>, String>;
}

impl Engine<'_> {
    /// Has the target's own fuzzer count what the corpus reaches and what the files `written` do.
    /// Where that is less, what its merge adds is kept, too, and written. One merge is what
    /// `cargo fuzz cmin` makes of a corpus; where coverage is flaky, each further one would add some
    /// files, and take as long.
    pub(super) fn count_by_its_own(
        &self,
        kept: &mut Kept,
        reserve: &Reserve<'_>,
        written: &mut Vec<PathBuf>,
        watcher: &mut dyn Watcher,
    ) -> Result<(), CleanError> {
        let Some(ruler) = self.cleaning.ruler.as_deref() else {
            return Ok(());
        };
        let mut own = OwnCount::default();
        let mut corpus = reserve.paths()?;
        corpus.extend_from_slice(&kept.onto);
        if corpus.len() > MOST {
            own.why_not = Some(format!("it is not asked about more than {MOST} files"));
            kept.own_count = Some(own);
            return Ok(());
        }
        watcher.doing(Doing::Counting {
            files: corpus.len() as u64,
        });
        let count = |files: &[PathBuf], why_not: &mut Option<String>| {
            self.told(ruler.count(files, self.stop), why_not)
        };
        own.before = count(&corpus, &mut own.why_not)?;
        own.counts = 1;
        if own.before.is_some() {
            own.after = count(&all_of(written, kept), &mut own.why_not)?;
        }
        if own.is_less() {
            own.merges = 1;
            let excluded = reserve.paths_of(&reserve.excluded(&kept.files))?;
            let more = ruler.merge(&all_of(written, kept), &excluded, self.stop);
            let more = self.told(more, &mut own.why_not)?.unwrap_or_default();
            let more = taken_back(reserve, &more)?;
            own.added = more.len() as u64;
            if !more.is_empty() {
                kept.files.extend(more);
                *written = self.write(kept)?;
                own.after = count(&all_of(written, kept), &mut own.why_not)?;
            }
        }
        if own.is_less() {
            // All that the merge adds is there: what is still less may be chance.
            own.counts += 1;
            let again = count(&corpus, &mut own.why_not)?;
            own.before = own.before.zip(again).map(|(one, other)| one.least(other));
            let again = count(&all_of(written, kept), &mut own.why_not)?;
            own.after = own.after.zip(again).map(|(one, other)| one.most(other));
        }
        kept.own_count = Some(own);
        Ok(())
    }

    /// What was told; where nothing was, why goes to `why_not`.
    fn told<T>(
        &self,
        told: Result<T, String>,
        why_not: &mut Option<String>,
    ) -> Result<Option<T>, CleanError> {
        if self.settings().stopped() {
            return Err(CleanError::Interrupted);
        }
        Ok(told.map_err(|why| *why_not = Some(why)).ok())
    }
}

/// The files that are written and those that they are added to.
fn all_of(written: &[PathBuf], kept: &Kept) -> Vec<PathBuf> {
    [written, &kept.onto[..]].concat()
}

fn taken_back(reserve: &Reserve<'_>, contents: &[Vec<u8>]) -> Result<Vec<Keeping>, CleanError> {
    let mut all = Vec::new();
    for bytes in contents {
        let why = "libFuzzer's own merge adds it to the other kept files";
        all.extend(reserve.take_back(bytes, why)?);
    }
    Ok(all)
}
