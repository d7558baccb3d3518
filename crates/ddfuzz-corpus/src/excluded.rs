//! Files that a cleanup does not use, and why.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use crate::Amount;

/// Examples that are kept at most.
const EXAMPLES: usize = 16;

/// Files, or other things, that are excluded for one kind of reason: how many, and some examples
/// with the exact reason. The examples are those with the least paths, whatever the order of the
/// calls.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Excluded {
    amount: Amount,
    examples: BTreeMap<PathBuf, String>,
}

impl Excluded {
    /// Counts one more, of `bytes` bytes (0 where the size is unknown).
    pub fn add(&mut self, path: &Path, bytes: u64, why: impl FnOnce() -> String) {
        self.amount.add(bytes);
        let last = self.examples.last_key_value();
        let full = self.examples.len() == EXAMPLES;
        if full && last.is_some_and(|(last, _)| path >= last.as_path()) {
            return;
        }
        self.examples.insert(path.to_owned(), why());
        if self.examples.len() > EXAMPLES {
            self.examples.pop_last();
        }
    }

    /// Adds what another one has excluded.
    pub fn join(&mut self, other: Excluded) {
        let Excluded { amount, examples } = other;
        self.amount.files += amount.files;
        self.amount.bytes += amount.bytes;
        self.examples.extend(examples);
        while self.examples.len() > EXAMPLES {
            self.examples.pop_last();
        }
    }

    /// How many, and their bytes as far as these are known.
    pub fn amount(&self) -> Amount {
        self.amount
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.amount.files == 0
    }

    /// At most 16 of them by path, each with its reason.
    pub fn examples(&self) -> impl Iterator<Item = (&Path, &str)> {
        let examples = self.examples.iter();
        examples.map(|(path, why)| (path.as_path(), why.as_str()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_examples_do_not_depend_on_the_order() {
        let paths: Vec<PathBuf> = (0..100).map(|n| format!("{n:03}").into()).collect();
        let (mut forth, mut back) = (Excluded::default(), Excluded::default());
        for path in &paths {
            forth.add(path, 2, || "gone".to_owned());
        }
        for path in paths.iter().rev() {
            let mut one = Excluded::default();
            one.add(path, 2, || "gone".to_owned());
            back.join(one);
        }
        assert_eq!(forth, back);
        assert_eq!(
            forth.amount(),
            Amount {
                files: 100,
                bytes: 200
            }
        );
        assert_eq!(forth.examples().count(), EXAMPLES);
        assert_eq!(forth.examples().next(), Some((Path::new("000"), "gone")));
    }
}
