//! Hashes that identify texts in the log.

use ddfuzz_delta::TextId;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::{borrow::Cow, fs::File, io, path::Path};

/// The blake3 hash of a byte string, such as a candidate, written as 64 hex digits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ContentHash(blake3::Hash);

/// The first 8 bytes of a [`ContentHash`], written as 16 hex digits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ShortHash([u8; 8]);

impl ContentHash {
    /// Computes the blake3 hash of `text`.
    pub fn of(text: &[u8]) -> ContentHash {
        ContentHash(blake3::hash(text))
    }

    /// Computes the hash of a file's content without loading it into memory.
    ///
    /// # Errors
    /// If the file cannot be read.
    pub fn of_file(path: &Path) -> io::Result<ContentHash> {
        let mut hasher = blake3::Hasher::new();
        hasher.update_reader(File::open(path)?)?;
        Ok(ContentHash(hasher.finalize()))
    }

    /// Wraps 32 bytes that already are a blake3 hash; hashes nothing.
    pub fn from_bytes(bytes: [u8; 32]) -> ContentHash {
        ContentHash(blake3::Hash::from_bytes(bytes))
    }

    /// Returns the first 8 bytes of the hash.
    pub fn short(self) -> ShortHash {
        let mut bytes = [0; 8];
        bytes.copy_from_slice(&self.0.as_bytes()[..8]);
        ShortHash(bytes)
    }

    /// Returns the first 16 bytes of the hash. They are the id of a text in the cache of outcomes.
    pub fn text_id(self) -> TextId {
        let mut bytes = [0; 16];
        bytes.copy_from_slice(&self.0.as_bytes()[..16]);
        TextId(bytes)
    }
}

impl std::fmt::Display for ContentHash {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0.to_hex())
    }
}

impl std::fmt::Display for ShortHash {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl Serialize for ContentHash {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for ContentHash {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<ContentHash, D::Error> {
        let text = String::deserialize(deserializer)?;
        blake3::Hash::from_hex(text)
            .map(ContentHash)
            .map_err(serde::de::Error::custom)
    }
}

impl Serialize for ShortHash {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for ShortHash {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<ShortHash, D::Error> {
        let text = String::deserialize(deserializer)?;
        let lower_hex = |digit: u8| digit.is_ascii_digit() || (b'a'..=b'f').contains(&digit);
        if text.len() != 16 || !text.bytes().all(lower_hex) {
            return Err(serde::de::Error::custom(
                "a short hash has 16 lower-case hex digits",
            ));
        }
        u64::from_str_radix(&text, 16)
            .map(|value| ShortHash(value.to_be_bytes()))
            .map_err(serde::de::Error::custom)
    }
}

impl JsonSchema for ContentHash {
    fn schema_name() -> Cow<'static, str> {
        "ContentHash".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "string", "pattern": "^[0-9a-f]{64}$" })
    }
}

impl JsonSchema for ShortHash {
    fn schema_name() -> Cow<'static, str> {
        "ShortHash".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "string", "pattern": "^[0-9a-f]{16}$" })
    }
}
