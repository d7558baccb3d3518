//! The message of a crash: what the program, its runtime or a sanitizer said of it, for people.

use super::lines::lines;
use super::{Report, ReportAccess, Tool};
use ddfuzz_model::files::printable;

/// Lines of a message that are kept.
const LINES: usize = 16;
/// Characters of a line that are kept.
const LINE: usize = 400;
/// Characters of a message that are kept.
const LONGEST: usize = 2000;
/// Lines of stderr, counted from its end, in which a program that gives up is taken to say why.
const LAST: usize = 8;

/// Words by which a line says that something is wrong, in lower case.
const ALARMS: [&str; 16] = [
    "abort",
    "assert",
    "bad ",
    "bug",
    "cannot",
    "check",
    "corrupt",
    "error",
    "exception",
    "fail",
    "fatal",
    "impossible",
    "invalid",
    "overflow",
    "panic",
    "unexpected",
];

/// Beginnings of what libFuzzer and sanitizers print around a crash.
const NOISE: [&str; 10] = [
    "==",
    "#",
    "INFO: ",
    "NOTE: ",
    "SUMMARY: ",
    "Running: ",
    "Executed ",
    "MS: ",
    "Base64: ",
    "artifact_prefix",
];

/// A text of unknown origin as a message: control and format characters stand as their escapes,
/// and lines, their number and the whole are of bounded length. `None` where nothing is left.
pub fn message(text: &str) -> Option<String> {
    let mut kept = String::new();
    let mut all = text.trim().lines();
    for line in all.by_ref().take(LINES) {
        if !kept.is_empty() {
            kept.push('\n');
        }
        let line = line.trim_end().replace('\t', "    ");
        kept.push_str(&shortened(&printable(&line), LINE));
    }
    if all.next().is_some() {
        kept.push_str("\n…");
    }
    (!kept.is_empty()).then(|| shortened(&kept, LONGEST))
}

/// The first characters, the last of them `…` where there were more.
fn shortened(text: &str, most: usize) -> String {
    match text.char_indices().nth(most - 1) {
        Some((end, last)) if end + last.len_utf8() < text.len() => format!("{}…", &text[..end]),
        _ => text.to_owned(),
    }
}

/// What a sanitizer's report is about, in one line: its own first line without process ids,
/// addresses and registers, and the access or the leak.
pub fn of_report(report: &Report) -> String {
    let headline = match report.headline.as_str() {
        "" => format!("{}: {}", report.tool.name(), report.kind),
        headline => headline.to_owned(),
    };
    let access = match report.access {
        Some(ReportAccess::Read) => "READ",
        Some(ReportAccess::Write) => "WRITE",
        None => "",
    };
    match (access, report.size) {
        ("", Some(size)) if report.tool == Tool::Lsan => {
            let kind = report.kind.replace('-', " ");
            format!("{headline}, {kind} of {size} bytes")
        }
        ("", _) => headline,
        (access, Some(size)) => format!("{headline}, {access} of size {size}"),
        (access, None) => format!("{headline}, {access}"),
    }
}

/// Why a program gives up that aborts or exits by itself: the last line on stderr that says so
/// by one of the usual words; `None` where no line does.
pub fn last_words(stderr: &[u8]) -> Option<String> {
    let said: Vec<String> = lines(stderr)
        .filter(|line| !line.trim().is_empty())
        .collect();
    let last = said.iter().rev().take(LAST);
    let mut alarming = last.filter(|line| {
        let lower = line.trim_start().to_lowercase();
        let is_noise = NOISE
            .iter()
            .any(|begin| line.trim_start().starts_with(begin));
        !is_noise && ALARMS.iter().any(|word| lower.contains(word))
    });
    alarming.next().map(|line| line.trim().to_owned())
}
