//! How an input reaches the `main` of a target.

use std::ffi::OsString;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use ddfuzz_model::files::{Base64, OsText};

/// How an input reaches the `main` of a target (the channels of the fuzz studies). Entry functions
/// are given the input itself, whatever the channel; they are not called at a terminal.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Channel {
    /// On stdin, or in a file of any name where an argument holds `@@`.
    #[default]
    Plain,
    /// In a file of this name, which `@@` in the arguments stands for.
    Named(OsText),
    /// In two files: the first `@@` in the arguments stands for one that holds the input up to its
    /// first byte [`SEPARATOR`], the others for one that holds what is behind it.
    TwoFiles,
    /// As keystrokes at a terminal; `@@` in the arguments stands for a text to work on.
    Terminal(Terminal),
}

/// A terminal of a target's own.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Terminal {
    /// Lines.
    pub rows: u16,
    /// Characters in a line.
    pub columns: u16,
    /// Keystrokes that end the program, sent behind the input.
    pub ending: Base64,
}

impl Default for Terminal {
    /// 24 lines of 80 characters; no keystrokes that end anything.
    fn default() -> Terminal {
        Terminal {
            rows: 24,
            columns: 80,
            ending: Base64(Vec::new()),
        }
    }
}

/// ASCII's file separator: between the two files of [`Channel::TwoFiles`].
pub const SEPARATOR: u8 = 0x1c;

impl Channel {
    /// The channel with a file of this name.
    pub fn named(name: impl Into<OsString>) -> Channel {
        Channel::Named(OsText(name.into()))
    }

    /// The options by which the command line asks for it.
    pub fn options(&self) -> Vec<OsString> {
        match self {
            Channel::Plain => Vec::new(),
            Channel::Named(name) => {
                let mut option = OsString::from("--file-name=");
                option.push(&name.0);
                vec![option]
            }
            Channel::TwoFiles => vec!["--two-files".into()],
            Channel::Terminal(terminal) => {
                let size = format!("--terminal={}x{}", terminal.rows, terminal.columns);
                let keys = terminal.ending.0.iter();
                let keys: String = keys.map(|byte| format!("\\x{byte:02x}")).collect();
                let ending = (!keys.is_empty()).then(|| format!("--ending={keys}").into());
                [size.into()].into_iter().chain(ending).collect()
            }
        }
    }

    /// Whether it is the one that needs no record.
    pub fn is_plain(&self) -> bool {
        *self == Channel::Plain
    }
}

/// The two files that an input of [`Channel::TwoFiles`] stands for; without a [`SEPARATOR`] the
/// second one is empty.
pub fn two_files(input: &[u8]) -> (&[u8], &[u8]) {
    match input.iter().position(|byte| *byte == SEPARATOR) {
        Some(at) => (&input[..at], &input[at + 1..]),
        None => (input, &[]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_first_separator_ends_a_file() {
        assert_eq!(two_files(b"a\x1cb\x1cc"), (&b"a"[..], &b"b\x1cc"[..]));
        assert_eq!(two_files(b"ab"), (&b"ab"[..], &b""[..]));
        assert_eq!(two_files(b"\x1c"), (&b""[..], &b""[..]));
    }
}
