//! Names of texts, for the cache.

use std::hash::{DefaultHasher, Hasher};

use ddfuzz_delta::TextId;

/// The name of a text: two hashes of it, each of 64 bits. Texts made to collide could be made by
/// who knows the hash, but all that comes of it is a deletion that is not tried.
pub(crate) fn name(text: &[u8]) -> TextId {
    let half = |which: u64| {
        let mut hasher = DefaultHasher::new();
        hasher.write_u64(which);
        hasher.write(text);
        hasher.finish()
    };
    TextId((u128::from(half(0)) << 64 | u128::from(half(1))).to_le_bytes())
}
