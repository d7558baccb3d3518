//! The classic generator of the fuzz studies: random characters, printable or all, with or
//! without NUL, with or without line ends (Miller, Fredriksen and So, 1990; ISSTA, section 5).
//!
//! An input is named by (kind, seed, length) and is rebuilt from that name alone, on any machine:
//! the stream of random bytes is that of blake3 in its extendable-output mode.

use std::fmt;
use std::str::FromStr;

/// Which characters an input consists of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Kind {
    /// All 8-bit characters; only the printable ones (0x20 to 0x7e) where false.
    pub all: bool,
    /// NUL bytes among them.
    pub nul: bool,
    /// Line ends at random distances, of a scale that differs from input to input.
    pub newlines: bool,
}

impl Kind {
    /// Every kind, in a fixed order.
    pub const ALL: [Kind; 8] = {
        let mut kinds = [Kind {
            all: false,
            nul: false,
            newlines: false,
        }; 8];
        let mut index = 0;
        while index < 8 {
            kinds[index] = Kind {
                all: index & 1 != 0,
                nul: index & 2 != 0,
                newlines: index & 4 != 0,
            };
            index += 1;
        }
        kinds
    };

    /// The characters that the 256 values of a random byte are mapped to, evenly.
    fn alphabet(self) -> [u8; 256] {
        let (first, last) = if self.all { (0x01, 0xff) } else { (0x20, 0x7e) };
        let mut characters: Vec<u8> = (first..=last).filter(|&byte| byte != b'\n').collect();
        if self.nul {
            characters.push(0);
        }
        let mut table = [0; 256];
        for (value, character) in table.iter_mut().enumerate() {
            *character = characters[value * characters.len() / 256];
        }
        table
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.all { "all" } else { "printable" })?;
        f.write_str(if self.nul { "+nul" } else { "" })?;
        f.write_str(if self.newlines { "+lines" } else { "" })
    }
}

/// The name of a generated input: `KIND:SEED:LENGTH`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct InputName {
    /// Which characters.
    pub kind: Kind,
    /// The seed of its random bytes.
    pub seed: u64,
    /// Its length, in bytes.
    pub length: u64,
}

impl fmt::Display for InputName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{:016x}:{}", self.kind, self.seed, self.length)
    }
}

/// A text that names no generated input.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "{0:?} is not the name of a generated input; one looks like all+nul+lines:00000000000000ff:1000"
)]
pub struct NotAName(String);

impl NotAName {
    pub(in crate::campaign) fn new(text: &str) -> NotAName {
        NotAName(text.to_owned())
    }
}

impl FromStr for InputName {
    type Err = NotAName;

    fn from_str(text: &str) -> Result<InputName, NotAName> {
        let wrong = || NotAName(text.to_owned());
        let [kind, seed, length] = text.split(':').collect::<Vec<_>>()[..] else {
            return Err(wrong());
        };
        let kind = Kind::ALL
            .into_iter()
            .find(|known| known.to_string() == kind);
        Ok(InputName {
            kind: kind.ok_or_else(wrong)?,
            seed: u64::from_str_radix(seed, 16).map_err(|_| wrong())?,
            length: length.parse().map_err(|_| wrong())?,
        })
    }
}

/// Distances between line ends are drawn up to a scale between these powers of two, in bytes:
/// real programs have buffers for lines of 80 as well as of 8000 characters.
const LINE_SCALES: std::ops::Range<u32> = 4..14;

impl InputName {
    /// Rebuilds the input into `buffer`.
    pub fn write_into(&self, buffer: &mut Vec<u8>) {
        buffer.clear();
        buffer.resize(usize::try_from(self.length).unwrap_or(usize::MAX), 0);
        self.stream(b"ddfuzz-classic-1").fill(buffer);
        let alphabet = self.kind.alphabet();
        for byte in buffer.iter_mut() {
            *byte = alphabet[usize::from(*byte)];
        }
        if self.kind.newlines {
            self.end_lines(buffer);
        }
    }

    fn end_lines(&self, buffer: &mut [u8]) {
        let mut stream = self.stream(b"ddfuzz-classic-lines-1");
        let mut draw = |below: u64| {
            let mut bytes = [0; 8];
            stream.fill(&mut bytes);
            u64::from_le_bytes(bytes) % below
        };
        let scales = u64::from(LINE_SCALES.end - LINE_SCALES.start);
        let scale = 1 << (u64::from(LINE_SCALES.start) + draw(scales));
        let mut at = draw(scale) as usize;
        while let Some(byte) = buffer.get_mut(at) {
            *byte = b'\n';
            at += 1 + draw(scale) as usize;
        }
    }

    fn stream(&self, purpose: &[u8]) -> blake3::OutputReader {
        let mut hasher = blake3::Hasher::new();
        hasher.update(purpose);
        hasher.update(self.kind.to_string().as_bytes());
        hasher.update(&self.seed.to_le_bytes());
        hasher.finalize_xof()
    }
}
