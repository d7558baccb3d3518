//! What runs in one process leave to each other.

use super::{CleanError, Engine};
use crate::corpus::measure::{Gathered, Settings, run_again};
use crate::corpus::{Feature, Features};
use crate::exec::Freshness;

/// Up to so many contents each run has a process of its own: that costs seconds, and what a content
/// reaches then hangs on it alone.
const FEW: usize = 4096;
/// So many contents are looked at where there are more.
const PROBED: usize = 256;
/// Where more than this share of what they reach hangs on what ran before, each run gets a process
/// of its own, too.
const SHARE: usize = 20;

/// How contents are to be measured.
#[derive(Debug)]
pub(super) enum Measuring {
    /// By processes that they share, as far as the way lets them; these features, which hang on what
    /// ran before in the process, do not count.
    Together(Features),
    /// Each in a process of its own.
    Alone,
}

impl Engine<'_> {
    /// Whether contents are to share processes.
    pub(super) fn measuring(&self, gathered: &Gathered) -> Result<Measuring, CleanError> {
        if gathered.freshness() == Freshness::Fresh || gathered.places().is_none() {
            return Ok(Measuring::Together(Features::default()));
        }
        if gathered.len() <= FEW {
            return Ok(Measuring::Alone);
        }
        let texts = gathered.sample(PROBED);
        let together = self.each_reaches(&texts, Freshness::Shared, 1)?;
        let alone = self.each_reaches(&texts, Freshness::Fresh, self.cleaning.jobs)?;
        let (mut differing, mut all) = (Vec::<Feature>::new(), Features::default());
        for (together, alone) in together.iter().zip(&alone) {
            let more = together.less(alone).or(&alone.less(together));
            differing.extend_from_slice(more.as_slice());
            all = all.or(together);
        }
        let differing = Features::from_unsorted(differing);
        Ok(match differing.len() * SHARE > all.len() {
            true => Measuring::Alone,
            false => Measuring::Together(differing),
        })
    }

    /// What each of these texts reaches by workers of this kind; nothing where it is not told.
    fn each_reaches(
        &self,
        texts: &[Vec<u8>],
        freshness: Freshness,
        jobs: usize,
    ) -> Result<Vec<Features>, CleanError> {
        let settings = Settings {
            freshness,
            jobs,
            ..self.settings()
        };
        let mut reached = vec![Features::default(); texts.len()];
        let whole = run_again(&settings, &texts, 0, &mut |number, seen| {
            if let Ok(seen) = seen {
                reached[number] = seen.features.unwrap_or_default();
            }
            Ok(())
        })?;
        match whole {
            true => Ok(reached),
            false => Err(CleanError::Interrupted),
        }
    }
}
