//! The identity of a content: size and hash of a file's bytes.

use std::cmp::Ordering;
use std::fmt::{Display, Formatter};

/// Number of bytes of a content's hash that are written, in hex, as its file name.
const NAME_BYTES: usize = 8;

/// Identifies the content of a file by its size and blake3 hash, whatever the file is called. Ids,
/// and with them the results of a cleanup, are sorted by size, then by hash.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ContentId {
    size: u64,
    blake3: [u8; 32],
}

impl ContentId {
    /// Computes the id (size and blake3 hash) of the file content `bytes`.
    pub fn of(bytes: &[u8]) -> ContentId {
        ContentId {
            size: bytes.len() as u64,
            blake3: *blake3::hash(bytes).as_bytes(),
        }
    }

    /// Makes the id of a content from its size in bytes and its blake3 hash.
    pub fn new(size: u64, blake3: [u8; 32]) -> ContentId {
        ContentId { size, blake3 }
    }

    /// Makes the id of a content from its size in bytes and its blake3 hash as 64 hex digits;
    /// `None` if `digits` is not such a hash.
    pub fn parse(size: u64, digits: &str) -> Option<ContentId> {
        let blake3 = blake3::Hash::from_hex(digits).ok()?;
        Some(ContentId::new(size, *blake3.as_bytes()))
    }

    /// Returns the length of the content, in bytes.
    pub fn size(&self) -> u64 {
        self.size
    }

    /// Returns the blake3 hash of the content.
    pub fn blake3(&self) -> &[u8; 32] {
        &self.blake3
    }

    /// Returns the file name of the content in output directories: the first 16 hex digits of its
    /// hash.
    pub fn name(&self) -> String {
        let digits = self.blake3[..NAME_BYTES].iter();
        digits.map(|byte| format!("{byte:02x}")).collect()
    }
}

impl Ord for ContentId {
    fn cmp(&self, other: &ContentId) -> Ordering {
        // The first bytes of two hashes nearly always differ.
        let key = |id: &ContentId| {
            let first = id.blake3.first_chunk::<8>();
            (id.size, first.map_or(0, |first| u64::from_be_bytes(*first)))
        };
        key(self)
            .cmp(&key(other))
            .then_with(|| self.blake3.cmp(&other.blake3))
    }
}

impl PartialOrd for ContentId {
    fn partial_cmp(&self, other: &ContentId) -> Option<Ordering> {
        Some(self.cmp(other))
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
    fn of_equal_sizes_all_bytes_of_the_hash_decide() {
        let mut ids: Vec<ContentId> = (0..64)
            .map(|at| {
                let mut hash = [200; 32];
                hash[at % 32] = if at < 32 { 7 } else { 255 };
                ContentId::new(3, hash)
            })
            .collect();
        ids.sort();
        let hashes: Vec<[u8; 32]> = ids.iter().map(|id| *id.blake3()).collect();
        assert!(hashes.is_sorted());
    }

    #[test]
    fn a_name_is_that_of_the_output_directory() {
        let id = ContentId::of(b"abc");
        assert_eq!(id.name(), ddfuzz_store::hash_of(b"abc"));
        assert!(id.to_string().starts_with(&id.name()));
    }
}
