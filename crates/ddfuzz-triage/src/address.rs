//! Addresses and register values as records write them.

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A virtual address or the value of a register. Written as `"0x7f…"`, because many readers of
/// JSON lose the low digits of integers over 2⁵³.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Address(pub u64);

impl std::fmt::Display for Address {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:#x}", self.0)
    }
}

impl Serialize for Address {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Address {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Address, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.strip_prefix("0x")
            .and_then(|digits| u64::from_str_radix(digits, 16).ok())
            .map(Address)
            .ok_or_else(|| serde::de::Error::custom(format!("an address is 0x…, not {text:?}")))
    }
}
