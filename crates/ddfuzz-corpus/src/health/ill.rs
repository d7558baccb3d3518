//! An input that did not end well.

use std::path::PathBuf;

use ddfuzz_exec::Ended;
use ddfuzz_minimize::log::ContentHash;

/// An input of a corpus that did not end well.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ill {
    /// The file that has it; of several the one that reports are to name.
    pub path: PathBuf,
    /// Its content.
    pub content: ContentHash,
    /// Its length, in bytes.
    pub size: u64,
    /// How it ended.
    pub ended: Ended,
    /// Whether it was tried before, and ended well on every try. What ends badly after that now
    /// and then only is flaky, and does not get another chance.
    pub again: bool,
}

/// These in the order in which they are examined, which hangs on the contents alone: the shorter
/// ones first, and those of one length by their hashes. Each content stands once.
pub(super) fn in_order(ills: &[Ill]) -> Vec<&Ill> {
    let mut ordered: Vec<&Ill> = ills.iter().collect();
    ordered.sort_by_cached_key(|ill| (ill.size, ill.content.to_string(), ill.path.clone()));
    ordered.dedup_by_key(|ill| ill.content);
    ordered
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_order_hangs_on_contents_alone() {
        let ill = |path: &str, text: &[u8]| Ill {
            path: path.into(),
            content: ContentHash::of(text),
            size: text.len() as u64,
            ended: Ended::Timeout,
            again: false,
        };
        let mut ills = vec![
            ill("z", b"one"),
            ill("a", b"three"),
            ill("m", b"two"),
            ill("b", b"one"),
        ];
        let names = |ills: &[Ill]| -> Vec<PathBuf> {
            in_order(ills).iter().map(|ill| ill.path.clone()).collect()
        };
        let before = names(&ills);
        ills.reverse();
        assert_eq!(names(&ills), before);
        assert_eq!(before.len(), 3);
        assert_eq!(before.last(), Some(&PathBuf::from("a")));
        assert!(before.contains(&PathBuf::from("b")), "{before:?}");
    }
}
