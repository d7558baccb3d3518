//! The line by which a report begins.

use super::super::lines::cut;
use super::Tool;
use super::kinds;

/// What the first line of a report says.
#[derive(Debug)]
pub(super) struct Header {
    pub(super) tool: Tool,
    pub(super) kind: String,
    pub(super) size: Option<u64>,
    pub(super) location: Option<String>,
    /// The words are not known: the last line may name it better.
    pub(super) guessed: bool,
}

/// The longest `FILE:LINE:COLUMN` that is kept, in bytes.
const LONGEST_LOCATION: usize = 1024;

/// Reads a line by which a report begins; `None` where it is another.
pub(super) fn header(line: &str) -> Option<Header> {
    if let Some((location, message)) = line.split_once(": runtime error: ") {
        return Some(undefined(location, message));
    }
    // The minimal runtime knows neither place nor stack.
    if let Some(check) = line.strip_prefix("ubsan: ") {
        let kind = kinds::word(check)?;
        return Some(Header {
            tool: Tool::Ubsan,
            kind,
            size: None,
            location: None,
            guessed: false,
        });
    }
    let rest = after_process(line);
    let rest = ["ERROR: ", "WARNING: ", "FATAL: "]
        .iter()
        .find_map(|level| rest.strip_prefix(level))
        .or_else(|| rest.contains("CHECK failed").then_some(rest))?;
    let (tool, rest) = Tool::ALL.into_iter().find_map(|tool| {
        let rest = rest.strip_prefix(tool.title())?.strip_prefix(": ")?;
        Some((tool, rest))
    })?;
    let (kind, guessed) = kinds::of(tool, rest);
    let size = rest
        .strip_prefix("requested allocation size ")
        .and_then(kinds::number);
    (!kind.is_empty()).then_some(Header {
        tool,
        kind,
        size,
        location: None,
        guessed,
    })
}

fn undefined(location: &str, message: &str) -> Header {
    let location = location.trim();
    Header {
        tool: Tool::Ubsan,
        kind: kinds::check(message),
        size: None,
        location: (!location.is_empty() && location != "<unknown>")
            .then(|| cut(location, LONGEST_LOCATION).to_owned()),
        guessed: false,
    }
}

/// The line without its `==1234==`.
fn after_process(line: &str) -> &str {
    let Some(rest) = line.trim_start().strip_prefix("==") else {
        return line.trim_start();
    };
    let digits = rest.trim_start_matches(|digit: char| digit.is_ascii_digit());
    digits.strip_prefix("==").unwrap_or(rest)
}
