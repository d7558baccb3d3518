//! The name of a mutated seed, by which a campaign rebuilds it.

use std::fmt;
use std::str::FromStr;

use super::generator::NotAName;

/// Hex digits of the name of a content.
const DIGITS: usize = 16;

/// The name of a seed that was mutated: `seed+HASH:SEED`, or `seed+HASH` for one as it is.
///
/// HASH names the content, which stands in `corpus/HASH` of the output directory. The mutation is
/// a function of SEED, the seeds and words of the campaign and its greatest length.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct MutatedName {
    /// The name of the seed's content: the first 16 hex digits of its blake3.
    pub hash: String,
    /// The seed of the mutation; `None` where there is none.
    pub mutation: Option<u64>,
}

impl fmt::Display for MutatedName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "seed+{}", self.hash)?;
        match self.mutation {
            Some(mutation) => write!(f, ":{mutation:016x}"),
            None => Ok(()),
        }
    }
}

impl FromStr for MutatedName {
    type Err = NotAName;

    fn from_str(text: &str) -> Result<MutatedName, NotAName> {
        let wrong = || NotAName::new(text);
        let name = text.strip_prefix("seed+").ok_or_else(wrong)?;
        let (hash, mutation) = match name.split_once(':') {
            Some((hash, seed)) if is_hex(seed) => (hash, Some(seed)),
            Some(_) => return Err(wrong()),
            None => (name, None),
        };
        if !is_hex(hash) {
            return Err(wrong());
        }
        let mutation = mutation.map(|seed| u64::from_str_radix(seed, 16));
        Ok(MutatedName {
            hash: hash.to_owned(),
            mutation: mutation.transpose().map_err(|_| wrong())?,
        })
    }
}

fn is_hex(text: &str) -> bool {
    let digit = |byte: u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
    text.len() == DIGITS && text.bytes().all(digit)
}
