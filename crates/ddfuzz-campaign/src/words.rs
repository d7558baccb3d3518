//! Words: what a mutation may write into an input as a whole, because the target may look for it.

use std::collections::HashSet;

/// Where a word comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Source {
    /// A dictionary of the user's, or of a bundled target.
    Dictionary,
    /// The target's program: its texts and the constants that it compares with.
    Program,
}

/// One word.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Word {
    /// Its bytes; there is at least one.
    pub bytes: Vec<u8>,
    /// Where it comes from.
    pub source: Source,
}

/// The words of a campaign in the order in which they came, each once.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Words {
    all: Vec<Word>,
    known: HashSet<Vec<u8>>,
}

impl Words {
    /// Adds words; an empty one, and one that is there already, is passed over.
    pub fn add<B: Into<Vec<u8>>>(&mut self, source: Source, words: impl IntoIterator<Item = B>) {
        for bytes in words {
            let bytes = bytes.into();
            if !bytes.is_empty() && self.known.insert(bytes.clone()) {
                self.all.push(Word { bytes, source });
            }
        }
    }

    /// The words, in order.
    pub fn all(&self) -> &[Word] {
        &self.all
    }

    /// Those of one source, in order.
    pub fn of(&self, source: Source) -> impl Iterator<Item = &[u8]> {
        let all = self.all.iter().filter(move |word| word.source == source);
        all.map(|word| &word.bytes[..])
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.all.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// What names the words of a source: a blake3, in hex, over all of them in order.
    pub fn digest(&self, source: Source) -> String {
        let mut hasher = blake3::Hasher::new();
        hasher.update(b"ddfuzz-words-1");
        for word in self.of(source) {
            hasher.update(&(word.len() as u64).to_le_bytes());
            hasher.update(word);
        }
        hasher.finalize().to_hex().to_string()
    }
}
