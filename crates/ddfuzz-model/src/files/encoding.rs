//! JSON forms of bytes, and of arguments and paths that need not be UTF-8.

use base64::{Engine, engine::general_purpose::STANDARD};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::borrow::Cow;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};

/// Bytes that are stored in JSON as a base64 string with padding.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Base64(pub Vec<u8>);

impl Base64 {
    /// Returns the bytes as a base64 string with padding.
    pub fn text(&self) -> String {
        STANDARD.encode(&self.0)
    }
}

impl Serialize for Base64 {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.text())
    }
}

impl<'de> Deserialize<'de> for Base64 {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Base64, D::Error> {
        let text = String::deserialize(deserializer)?;
        STANDARD
            .decode(text)
            .map(Base64)
            .map_err(serde::de::Error::custom)
    }
}

impl JsonSchema for Base64 {
    fn schema_name() -> Cow<'static, str> {
        "Base64".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "string", "contentEncoding": "base64" })
    }
}

/// A command-line argument, environment variable or path. In JSON it is a string if it is UTF-8,
/// else `{"base64": …}`, so that no byte is lost.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct OsText(pub OsString);

impl<T: AsRef<OsStr> + ?Sized> From<&T> for OsText {
    fn from(text: &T) -> OsText {
        OsText(text.as_ref().to_owned())
    }
}

#[derive(Serialize, Deserialize)]
#[serde(untagged)]
enum Form {
    Text(String),
    Bytes { base64: Base64 },
}

impl Serialize for OsText {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let form = match self.0.to_str() {
            Some(text) => Form::Text(text.to_owned()),
            None => Form::Bytes {
                base64: Base64(self.0.as_bytes().to_vec()),
            },
        };
        form.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for OsText {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<OsText, D::Error> {
        Ok(OsText(match Form::deserialize(deserializer)? {
            Form::Text(text) => OsString::from(text),
            Form::Bytes { base64 } => OsString::from_vec(base64.0),
        }))
    }
}

impl JsonSchema for OsText {
    fn schema_name() -> Cow<'static, str> {
        "OsText".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "description": "a string where it is UTF-8, else its bytes",
            "anyOf": [
                { "type": "string" },
                {
                    "type": "object",
                    "properties": { "base64": { "type": "string", "contentEncoding": "base64" } },
                    "required": ["base64"]
                }
            ]
        })
    }
}
