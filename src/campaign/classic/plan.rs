//! Which input each run of a campaign gets: a function of (campaign seed, index of the run).

use crate::campaign::generator::{InputName, Kind};

/// Lengths are drawn from these decades, in bytes, the short ones more often: a megabyte takes
/// as long as a thousand short inputs.
const DECADES: [(u64, u64); 3] = [(1_000, 10_000), (10_000, 100_000), (100_000, 1_000_000)];
/// Below these values of a random byte lie the first two decades.
const SHARES: [u8; 2] = [160, 236];

/// The inputs of a campaign.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Plan {
    /// The campaign's seed.
    pub seed: u64,
    /// The greatest length, in bytes.
    pub max_len: u64,
}

impl Plan {
    /// The input of run `run`.
    pub fn input(&self, run: u64) -> InputName {
        let mut hasher = blake3::Hasher::new();
        hasher.update(b"ddfuzz-plan-1");
        hasher.update(&self.seed.to_le_bytes());
        hasher.update(&run.to_le_bytes());
        let draw = hasher.finalize();
        let bytes = draw.as_bytes();
        let number = |at: usize| {
            let mut word = [0; 8];
            word.copy_from_slice(&bytes[at..at + 8]);
            u64::from_le_bytes(word)
        };
        let decade = SHARES
            .iter()
            .take_while(|&&below| bytes[24] >= below)
            .count();
        let (shortest, longest) = DECADES[decade];
        let length = shortest + number(8) % (longest - shortest + 1);
        InputName {
            kind: Kind::ALL[usize::from(bytes[25]) % Kind::ALL.len()],
            seed: number(0),
            length: length.min(self.max_len),
        }
    }
}
