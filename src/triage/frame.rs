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
    /// `file:line`, where DWARF exists.
    pub line: Option<String>,
    /// Whether it is a frame of the user's code: outside the runtime modules.
    pub own: bool,
    /// Demangled names of the functions inlined there, innermost first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub inlined: Vec<String>,
    /// The module's GNU build id, as hex digits. Never part of a key.
    #[serde(default)]
    pub build_id: Option<String>,
    /// Why the frame is believed.
    #[serde(default)]
    pub trust: Trust,
}

impl Frame {
    /// The function and the line, as far as they are known: `parse at list.c:12`, else
    /// `exe+0x1189`.
    pub fn place(&self) -> String {
        let function = match self.inlined.first().or(self.name.as_ref()) {
            Some(name) => name.clone(),
            None => format!("{}+{:#x}", self.module, self.offset),
        };
        match &self.line {
            Some(line) => format!("{function} at {line}"),
            None => function,
        }
    }
}
