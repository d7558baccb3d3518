//! The classic generator of the fuzz studies: random characters, printable or all, with or
//! without NUL, with or without line ends (Miller, Fredriksen and So, 1990; ISSTA, section 5).
//!
//! An input is named by (kind, seed, length) and is rebuilt from that name alone, on any machine:
//! the stream of random bytes is that of blake3 in its extendable-output mode. [`Stream`] is the
//! one implementation; what stands in memory ([`InputName::write_into`]) was read from it.
//!
//! [`Preset`]s are the inputs of the published studies; [`escapes`] are those of C, in which keys
//! and epilogs are written.

pub mod escapes;
mod kind;
mod preset;
mod stream;

use std::fmt;
use std::io::Read;
use std::str::FromStr;

pub use kind::{Characters, Kind, Lines};
pub use preset::{DataSet, Preset, UnknownPreset, Variant};
pub use stream::Stream;

/// The name of a generated input: `KIND:SEED:LENGTH`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct InputName {
    /// Which characters.
    pub kind: Kind,
    /// The seed of its random bytes.
    pub seed: u64,
    /// Its length, in bytes; for [`Lines::Strings`], in lines.
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
    "{0:?} is not the name of a generated input; write it like all+nul+lines:00000000000000ff:1000"
)]
pub struct NotAName(String);

impl NotAName {
    pub(crate) fn new(text: &str) -> NotAName {
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
        Ok(InputName {
            kind: kind.parse().map_err(|_| wrong())?,
            seed: u64::from_str_radix(seed, 16).map_err(|_| wrong())?,
            length: length.parse().map_err(|_| wrong())?,
        })
    }
}

impl InputName {
    /// Its bytes, one after another: for inputs that are too long for memory.
    pub fn stream(&self) -> Stream {
        Stream::new(self)
    }

    /// Its length in bytes, where the name says it: `None` for [`Lines::Strings`], which are
    /// counted in lines.
    pub fn bytes(&self) -> Option<u64> {
        match self.kind.lines {
            Lines::None | Lines::Scaled => Some(self.length),
            Lines::Strings { .. } => None,
        }
    }

    /// Rebuilds the input into `buffer`.
    pub fn write_into(&self, buffer: &mut Vec<u8>) {
        buffer.clear();
        let mut stream = self.stream();
        let read = match self.bytes() {
            Some(bytes) => {
                buffer.resize(usize::try_from(bytes).unwrap_or(usize::MAX), 0);
                stream.read_exact(buffer)
            }
            None => stream.read_to_end(buffer).map(|_| ()),
        };
        read.expect("reading a stream never fails, and it has the named length");
    }
}
