//! One frame of the stack, as records write it.

use serde::{Deserialize, Serialize};

use super::snapshot::Trust;

/// One frame of the stack.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Frame {
    /// Base name of the module's mapping; `exe` for the main executable.
    pub module: String,
    /// Offset from the module's load bias, in bytes.
    pub offset: u64,
    /// Start of the function that covers it (FDE, else symbol), same origin as `offset`.
    pub function_start: Option<u64>,
    /// Demangled name, where symbols exist.
    pub name: Option<String>,
    /// `file:line` of the innermost function there, where DWARF exists: of the first of `inlined`,
    /// else of the one with this name.
    pub line: Option<String>,
    /// Whether it is a frame of the user's code: outside the runtime modules.
    pub own: bool,
    /// Whether it only gives up (`die`), so that its caller names the crash.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub gives_up: bool,
    /// Demangled names of the functions inlined there, innermost first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub inlined: Vec<String>,
    /// Where functions are inlined: `file:line` of each of them, innermost first, and behind these
    /// that of the function with this name.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub lines: Vec<Option<String>>,
    /// The module's GNU build id, as hex digits. Never part of a key.
    #[serde(default)]
    pub build_id: Option<String>,
    /// Why the frame is believed.
    #[serde(default)]
    pub trust: Trust,
}

/// One of the functions that a frame is in: one that was inlined there, or the one that holds it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Level<'a> {
    /// Its demangled name.
    pub name: Option<&'a str>,
    /// `file:line` in it.
    pub line: Option<&'a str>,
}

impl Frame {
    /// The functions that it is in, innermost first, each with its own line.
    pub fn levels(&self) -> impl Iterator<Item = Level<'_>> {
        let names = self.inlined.iter().map(Some).chain([self.name.as_ref()]);
        names.enumerate().map(|(at, name)| Level {
            name: name.map(String::as_str),
            line: match (at, self.lines.get(at)) {
                (_, Some(line)) => line.as_deref(),
                // Older records have the innermost one alone.
                (0, None) => self.line.as_deref(),
                (_, None) => None,
            },
        })
    }

    /// The innermost function and its line, as far as they are known: `parse at list.c:12`, else
    /// `exe+0x1189`.
    pub fn place(&self) -> String {
        self.site().to_string()
    }
}
