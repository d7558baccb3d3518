//! Counts of files that a cleanup does not use, with examples and reasons.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use crate::Amount;

/// Maximum number of files that one [`Excluded`] names as examples of files that a cleanup does not
/// use.
const EXAMPLES: usize = 16;

/// Files that a cleanup does not use, for one kind of reason (such as too large): their number and
/// total size, and up to 16 of them as examples, each with the exact reason. The examples are those
/// whose paths sort first.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Excluded {
    amount: Amount,
    examples: BTreeMap<PathBuf, String>,
}

impl Excluded {
    /// Counts one unused file of `bytes` bytes (0 if unknown). `why` makes the reason, and is
    /// called only if the file becomes an example.
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

    /// Returns the number of files counted as unused, and their total size in bytes (0 is counted
    /// for a file of unknown size).
    pub fn amount(&self) -> Amount {
        self.amount
    }

    /// Returns true if no file was counted as unused.
    pub fn is_empty(&self) -> bool {
        self.amount.files == 0
    }

    /// Returns up to 16 of the unused files, in the order of their paths, each with the reason why
    /// it is not used.
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
            back.add(path, 2, || "gone".to_owned());
        }
        assert_eq!(forth, back);
        assert_eq!((forth.amount().files, forth.amount().bytes), (100, 200));
        assert_eq!(forth.examples().count(), EXAMPLES);
        assert_eq!(forth.examples().next(), Some((Path::new("000"), "gone")));
    }
}
