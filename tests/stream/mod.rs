//! Random bytes for tests, always the same for a seed.

/// `length` bytes of the stream that `seed` names.
pub fn stream(seed: u64, length: usize) -> Vec<u8> {
    let mut bytes = vec![0; length];
    blake3::Hasher::new()
        .update(&seed.to_le_bytes())
        .finalize_xof()
        .fill(&mut bytes);
    bytes
}
