//! Which input each run of a campaign gets: a function of (campaign seed, index of the run).

use std::fmt;

use crate::generator::{InputName, Kind};
use crate::mutated::MutatedName;
use crate::seeds::Seeds;

/// Lengths are drawn from these decades, in bytes, the short ones more often: a megabyte takes
/// as long as a thousand short inputs.
const DECADES: [(u64, u64); 3] = [(1_000, 10_000), (10_000, 100_000), (100_000, 1_000_000)];
/// Below these values of a random byte lie the first two decades.
const SHARES: [u8; 2] = [160, 236];

/// Which input a run gets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RunInput {
    /// One of the classic generator.
    Generated(InputName),
    /// A seed, mutated or as it is.
    Mutated(MutatedName),
}

impl fmt::Display for RunInput {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RunInput::Generated(name) => name.fmt(f),
            RunInput::Mutated(name) => name.fmt(f),
        }
    }
}

/// The inputs of a campaign.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Plan {
    /// The campaign's seed.
    pub seed: u64,
    /// The greatest length, in bytes.
    pub max_len: u64,
}

/// The random bytes of a run.
struct Draw([u8; 32]);

impl Draw {
    fn number(&self, at: usize) -> u64 {
        let mut word = [0; 8];
        word.copy_from_slice(&self.0[at..at + 8]);
        u64::from_le_bytes(word)
    }
}

impl Plan {
    /// The input of run `run` in a campaign with these seeds: that of the classic generator, or, on
    /// an even chance, a mutated seed. In the first runs, of every two the second is a seed as it
    /// is, until each was run once.
    pub fn draw(&self, run: u64, seeds: &Seeds) -> RunInput {
        let count = seeds.len() as u64;
        let draw = self.bytes(run);
        let (place, mutation) = match (run / 2 < count, run % 2, draw.0[26] & 1) {
            (true, 1, _) => (run / 2, None),
            (false, _, 1) if count > 0 => (draw.number(16) % count, Some(draw.number(0))),
            _ => return RunInput::Generated(self.input(run)),
        };
        RunInput::Mutated(MutatedName {
            hash: seeds.all()[place as usize].hash.clone(),
            mutation,
        })
    }

    fn bytes(&self, run: u64) -> Draw {
        let mut hasher = blake3::Hasher::new();
        hasher.update(b"ddfuzz-plan-1");
        hasher.update(&self.seed.to_le_bytes());
        hasher.update(&run.to_le_bytes());
        Draw(*hasher.finalize().as_bytes())
    }

    /// The classic generator's input of run `run`.
    pub fn input(&self, run: u64) -> InputName {
        let draw = self.bytes(run);
        let bytes = &draw.0;
        let decade = SHARES
            .iter()
            .take_while(|&&below| bytes[24] >= below)
            .count();
        let (shortest, longest) = DECADES[decade];
        let length = shortest + draw.number(8) % (longest - shortest + 1);
        InputName {
            kind: Kind::ALL[usize::from(bytes[25]) % Kind::ALL.len()],
            seed: draw.number(0),
            length: length.min(self.max_len),
        }
    }
}
