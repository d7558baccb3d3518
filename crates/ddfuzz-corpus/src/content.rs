//! The identity of a content: size and hash of a file's bytes.

use std::fmt::{Display, Formatter};

/// Length of the hash in file names, in bytes.
const NAME_BYTES: usize = 8;

/// Identifies a content by its size and blake3 hash, whatever its file is called. Results of a
/// cleanup are sorted by it, so by size first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ContentId {
    size: u64,
    blake3: [u8; 32],
}

impl ContentId {
    /// Computes the id of a file with these bytes.
    pub fn of(bytes: &[u8]) -> ContentId {
        ContentId {
            size: bytes.len() as u64,
            blake3: *blake3::hash(bytes).as_bytes(),
        }
    }

    /// The id of a content with this size and hash.
    pub fn new(size: u64, blake3: [u8; 32]) -> ContentId {
        ContentId { size, blake3 }
    }

    /// The id of a content with this size and a hash of 64 hex digits; `None` if `digits` is no
    /// hash.
    pub fn parse(size: u64, digits: &str) -> Option<ContentId> {
        let blake3 = blake3::Hash::from_hex(digits).ok()?;
        Some(ContentId::new(size, *blake3.as_bytes()))
    }

    /// Length of the content, in bytes.
    pub fn size(&self) -> u64 {
        self.size
    }

    /// blake3 hash of the content.
    pub fn blake3(&self) -> &[u8; 32] {
        &self.blake3
    }

    /// File name of the content in output directories: the first 16 hex digits of its hash.
    pub fn name(&self) -> String {
        let digits = self.blake3[..NAME_BYTES].iter();
        digits.map(|byte| format!("{byte:02x}")).collect()
    }
}

impl Display for ContentId {
    fn fmt(&self, f: &mut Formatter<'_>) -> std::fmt::Result {
        self.blake3
            .iter()
            .try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shorter_contents_come_first_whatever_their_hashes() {
        let mut ids: Vec<ContentId> = (0..20).map(|len| ContentId::of(&vec![7; len])).collect();
        ids.reverse();
        ids.sort();
        let sizes: Vec<u64> = ids.iter().map(ContentId::size).collect();
        assert_eq!(sizes, (0..20).collect::<Vec<u64>>());
    }

    #[test]
    fn a_name_is_that_of_the_output_directory() {
        let id = ContentId::of(b"abc");
        assert_eq!(id.name(), ddfuzz_store::hash_of(b"abc"));
        assert!(id.to_string().starts_with(&id.name()));
    }
}
