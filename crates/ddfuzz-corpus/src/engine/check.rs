//! The final check: runs the written files again and compares their features with those of the
//! corpus.

use std::path::PathBuf;

use super::subset::KeptSet;
use super::{CleanError, CleanPhase, Engine};
use crate::measure::{Files, run_again};
use crate::{FeatureUnion, Features};
use ddfuzz_campaign::Screen;

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
    /// Features that every round of the check reached, but no earlier run of an input of the corpus
    /// or of the `--onto` corpus.
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
