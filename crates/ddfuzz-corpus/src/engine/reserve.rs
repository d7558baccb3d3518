//! The contents that are not kept, to take some of them back.

use std::collections::{BTreeSet, HashSet};
use std::path::PathBuf;

use super::CleanError;
use super::keeping::Keeping;
use crate::measure::Contents;
use crate::{ContentId, Features};

/// For a feature that the check misses, so many contents that reach it are taken back at most.
const MOST: usize = 8;

/// All contents that end well, of which any that is not kept can be taken back.
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

    /// The numbers of those that are not kept as they are: left out, or trimmed.
    pub fn excluded(&self, kept: &[Keeping]) -> Vec<usize> {
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
    pub fn take_back(&self, bytes: &[u8], why: &str) -> Result<Option<Keeping>, CleanError> {
        let number = self.contents.find(&ContentId::of(bytes));
        let number = number.filter(|number| self.healthy.binary_search(number).is_ok());
        number.map(|number| self.keep(number, why)).transpose()
    }

    /// Of those that are not kept as they are, some for each of these features that have reached it.
    pub fn holders(
        &self,
        features: &Features,
        kept: &[Keeping],
        why: &str,
    ) -> Result<Vec<Keeping>, CleanError> {
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

    fn keep(&self, number: usize, why: &str) -> Result<Keeping, CleanError> {
        let (id, seen) = (self.contents.id(number), self.contents.seen(number)?);
        Ok(Keeping {
            from: self.contents.path(number)?,
            content: id.to_string(),
            size_before: id.size(),
            features: seen.features.unwrap_or_default(),
            time: seen.time,
            why: why.to_owned(),
            whole: true,
            ..Keeping::default()
        })
    }
}
