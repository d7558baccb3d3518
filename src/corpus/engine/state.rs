//! What runs in one process leave to each other.

use super::{CleanError, Engine};
use crate::corpus::measure::{Contents, Settings, run_again};
use crate::corpus::{ContentId, Feature, Features};
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
    /// As they were; these features, which hang on what ran before in the process, do not count.
    AsTheyWere(Features),
    /// Each in a process of its own.
    Alone,
}

impl Engine<'_> {
    /// Whether contents, which shared processes, are to be measured again without that.
    pub(super) fn measuring(&self, contents: &Contents) -> Result<Measuring, CleanError> {
        if contents.freshness() == Freshness::Fresh || contents.places().is_none() {
            return Ok(Measuring::AsTheyWere(Features::default()));
        }
        if contents.len() <= FEW {
            return Ok(Measuring::Alone);
        }
        let texts = sample(contents)?;
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
            false => Measuring::AsTheyWere(differing),
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

/// Contents that ended well, those with the least hashes; what cannot be read again is left out.
fn sample(contents: &Contents) -> Result<Vec<Vec<u8>>, CleanError> {
    let mut numbers: Vec<usize> = (0..contents.len())
        .filter(|number| !contents.is_suspicious(*number))
        .collect();
    let hash = |number: &usize| -> [u8; 32] { *ContentId::blake3(&contents.id(*number)) };
    if numbers.len() > PROBED {
        numbers.select_nth_unstable_by_key(PROBED, hash);
        numbers.truncate(PROBED);
    }
    numbers.sort_unstable();
    let read = |number: usize| {
        let mut bytes = Vec::new();
        contents.read(number, &mut bytes).is_ok().then_some(bytes)
    };
    Ok(numbers.into_iter().filter_map(read).collect())
}
