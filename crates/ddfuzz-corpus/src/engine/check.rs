//! The independent check: what was written is run again, by new processes.

use std::path::PathBuf;

use super::keeping::Kept;
use super::{CleanError, Doing, Engine, Watcher};
use crate::measure::{Files, run_again};
use crate::{Features, Union};

/// A feature that is there now and then only may fail to come once more.
const TRIES: u32 = 3;

/// What was reached by what was written.
#[derive(Debug, Default)]
pub(super) struct Checked {
    /// All of it, as far as it counts.
    pub reached: Features,
    /// What should have been, and was not.
    pub missing: Features,
    /// What was reached each time besides, and by no run before.
    pub gained: Features,
    /// Runs that it took.
    pub runs: u64,
}

impl Engine<'_> {
    /// Runs the files `written`, with those of the corpus that is added to, and sees whether they
    /// reach what they should: no less than the corpus did, and no more, but for what does not come
    /// each time.
    pub(super) fn check(
        &self,
        kept: &Kept,
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

    /// All that these files reach together, in one run of each.
    fn reached(&self, files: &Files<'_>, round: u32) -> Result<Features, CleanError> {
        let mut union = Union::default();
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
