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
    /// The line, without what differs from run to run.
    pub(super) headline: String,
    /// The words are not known: the last line may name it better.
    pub(super) guessed: bool,
}

/// The longest `FILE:LINE:COLUMN` or line that is kept, in bytes.
const LONGEST: usize = 1024;

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
            headline: format!("ubsan: {kind}"),
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
        headline: cut(&format!("{}: {}", tool.title(), steady(rest)), LONGEST).to_owned(),
        guessed,
    })
}

fn undefined(location: &str, message: &str) -> Header {
    let location = location.trim();
    Header {
        tool: Tool::Ubsan,
        kind: kinds::check(message),
        size: None,
        headline: cut(&format!("runtime error: {message}"), LONGEST).to_owned(),
        location: (!location.is_empty() && location != "<unknown>")
            .then(|| cut(location, LONGEST).to_owned()),
        guessed: false,
    }
}

/// What a report says behind its tool's name, without registers, threads and ids at its end, and
/// without the address there unless it is what faulted.
fn steady(said: &str) -> &str {
    const ENDS: [&str; 7] = [
        " at pc 0x",
        " (pc 0x",
        " bp 0x",
        " in thread T",
        " (thread T",
        " (T",
        " (pid=",
    ];
    let ends = ENDS.iter().filter_map(|end| said.find(end));
    let said = said[..ends.min().unwrap_or(said.len())].trim_end_matches([' ', ':']);
    let (before, last) = said.rsplit_once(' ').unwrap_or(("", said));
    let is_address = (last.strip_prefix("0x"))
        .is_some_and(|hex| hex.len() > 2 && hex.bytes().all(|digit| digit.is_ascii_hexdigit()));
    let leads_to_it = [" on address", " on", ":"];
    let mut without = leads_to_it
        .iter()
        .filter_map(|words| before.strip_suffix(words));
    match without.next() {
        Some(without) if is_address => without,
        _ => said,
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
