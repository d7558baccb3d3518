//! The seed of `ddfuzz gen`: a whole number, with a sign as in `fuzz`.

use std::fmt;
use std::str::FromStr;
use std::time::SystemTime;

/// Random lengths are below this, as in `fuzz`.
const LENGTHS: u64 = 100_000;

/// A whole number of 64 bits, with or without a sign.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Seed(i128);

impl Seed {
    /// The time, in seconds.
    pub fn now() -> Seed {
        let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
        Seed(since.map_or(0, |time| i128::from(time.as_secs())))
    }

    /// The remainder by `modulus`, which has the sign of the seed, as in C.
    pub fn modulo(self, modulus: i64) -> Seed {
        Seed(self.0 % i128::from(modulus))
    }

    /// Its 64 bits: those of -1 are all ones.
    pub fn bits(self) -> u64 {
        self.0 as u64
    }

    /// The length of an input that is given none.
    pub fn length(self) -> u64 {
        let mut hasher = blake3::Hasher::new();
        hasher.update(b"ddfuzz-classic-length-1");
        hasher.update(&self.bits().to_le_bytes());
        let mut bytes = [0; 8];
        hasher.finalize_xof().fill(&mut bytes);
        u64::from_le_bytes(bytes) % LENGTHS
    }
}

impl From<u64> for Seed {
    fn from(bits: u64) -> Seed {
        Seed(i128::from(bits))
    }
}

impl fmt::Display for Seed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl FromStr for Seed {
    type Err = String;

    fn from_str(text: &str) -> Result<Seed, String> {
        let number: Option<i128> = text.parse().ok();
        let range = i128::from(i64::MIN)..=i128::from(u64::MAX);
        let number = number.filter(|number| range.contains(number));
        number
            .map(Seed)
            .ok_or_else(|| format!("a seed is a whole number from {} to {}", i64::MIN, u64::MAX))
    }
}
