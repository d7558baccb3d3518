//! One frame of a report's stack.

use serde::{Deserialize, Serialize};

use super::super::lines::cut;
use crate::address::Address;

/// One frame of a stack in a report.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ReportFrame {
    /// Its address in the process; of a caller, that of its return address − 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub address: Option<Address>,
    /// Path of the module, or its base name: as the report has it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub module: Option<String>,
    /// Offset from the module's load bias, in bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub offset: Option<Address>,
    /// Name of the function, where the report was symbolized.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub function: Option<String>,
    /// `file:line:column`, where the report was symbolized.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub line: Option<String>,
}

impl ReportFrame {
    /// Base name of the module.
    pub fn base_name(&self) -> Option<&str> {
        let module = self.module.as_deref()?;
        Some(module.rsplit('/').next().unwrap_or(module))
    }
}

/// The longest name or path that is kept, in bytes.
const LONGEST: usize = 1024;

/// Reads a line that begins with `#N `; `None` where it does not.
pub(super) fn numbered(line: &str) -> Option<(u64, ReportFrame)> {
    let rest = line.trim_start().strip_prefix('#')?;
    let end = rest.find(' ')?;
    let number = rest[..end].parse().ok()?;
    Some((number, frame(rest[end..].trim())))
}

/// Reads what stands behind the number:
///
/// ```text
/// 0x55d0  (/path/module+0x1234) (BuildId: 00ff)     not symbolized
/// 0x55d0 in function(int) /path/file.c:3:4          symbolized
/// 0x55d0 in function (/path/module+0x1234)          the same, without debug information
/// function /path/file.c:3:4 (module+0x1234)         ThreadSanitizer; `<null>` for what it misses
/// ```
fn frame(text: &str) -> ReportFrame {
    let mut frame = ReportFrame::default();
    let mut rest = text;
    if let Some(hex) = rest.strip_prefix("0x") {
        let end = hex.find(' ').unwrap_or(hex.len());
        if let Ok(address) = u64::from_str_radix(&hex[..end], 16) {
            frame.address = Some(Address(address));
            rest = hex[end..].trim_start();
        }
    }
    if let Some(at) = rest.rfind(" (BuildId: ") {
        rest = rest[..at].trim_end();
    }
    if let Some((before, module, offset)) = module(rest) {
        frame.module = Some(cut(module, LONGEST).to_owned());
        frame.offset = Some(Address(offset));
        rest = before.trim_end();
    }
    let rest = rest.strip_prefix("in ").unwrap_or(rest).trim();
    let (function, line) = match rest.rsplit_once(' ') {
        Some((function, line)) if is_place(line) => (function.trim(), Some(line)),
        // A location that is missing is `<null>`, too.
        Some((function, "<null>")) => (function.trim(), None),
        _ => (rest, None),
    };
    let known = |text: &str| !text.is_empty() && text != "<null>";
    frame.function = known(function).then(|| cut(function, LONGEST).to_owned());
    frame.line = line.map(|line| cut(line, LONGEST).to_owned());
    frame
}

/// `… (MODULE+0xOFFSET)` at the end. A path may hold spaces and parentheses: it reaches back to
/// the first one behind a space that is followed by its `/`, else to the last one.
fn module(text: &str) -> Option<(&str, &str, u64)> {
    let inner = text.strip_suffix(')')?;
    let (head, offset) = inner.rsplit_once("+0x")?;
    let offset = u64::from_str_radix(offset, 16).ok()?;
    let begin = match head.find("(/") {
        Some(at) if at == 0 || head[..at].ends_with(' ') => at,
        _ => head.rfind('(')?,
    };
    Some((&head[..begin], &head[begin + 1..], offset))
}

/// Whether a word is `FILE:LINE` or `FILE:LINE:COLUMN`.
fn is_place(word: &str) -> bool {
    word.rsplit_once(':').is_some_and(|(file, number)| {
        !file.is_empty() && !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit())
    })
}
