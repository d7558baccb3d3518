//! The block that is printed when a new group's minimization has ended.

use std::path::Path;

use super::text::{cut, printable, shell_word};
use super::{GroupView, VariantView, hexdump, size};
use crate::store::Kind;
use crate::triage::Severity;

/// Bytes of the reproducer that are shown.
const SHOWN: usize = 16;

/// Lines of what a harness makes of the reproducer that are shown, and characters of each.
const DEBUG: (usize, usize) = (16, 100);

/// Eight lines on one group: what, where in the user's code, how far it was reduced, the claim,
/// the reproducer, how to run it again, and where its file and log are. Where a harness with
/// structured input has told what it makes of the reproducer, the first lines of that follow.
/// Variants have a line each before them.
pub fn block(view: &GroupView) -> String {
    let what = match view.kind {
        Kind::Crash => "crash",
        Kind::Flaky => "flaky crash",
        Kind::Hang => "hang",
        Kind::Oom => "out-of-memory failure",
    };
    let reduced = size::reduction(view.size_before, view.size_after());
    let reduced = match view.tests_executed() {
        Some(tests) => format!("{reduced} in {}", size::counted(tests, "test")),
        None => reduced,
    };
    let path = |path: Option<&Path>| path.map_or_else(|| "none".to_owned(), shell_word);
    let lines = [
        (
            "where",
            view.place.clone().unwrap_or_else(|| "unknown".to_owned()),
        ),
        ("size", reduced),
        ("claim", view.claim()),
        ("input", hexdump::line(&view.reproducer, SHOWN)),
        ("replay", path(view.script.as_deref())),
        ("file", path(Some(&view.file))),
        ("log", path(view.log.as_deref())),
    ];
    let of = view.utility.as_ref();
    let of = of.map_or_else(String::new, |utility| format!(" of {}", printable(utility)));
    let mut text = format!(
        "{what} {}{of}: {}, {} ({})\n",
        view.major.short(),
        printable(&view.class.to_string()),
        severity(view.severity),
        printable(&view.severity_reason),
    );
    for (name, value) in lines {
        text.push_str(&format!("  {name:<7} {}\n", printable(&value)));
    }
    for variant in &view.variants {
        text.push_str(&format!("  variant {}\n", printable(&line_of(variant))));
    }
    let debug = (view.minimized.as_ref()).and_then(|minimized| minimized.debug.as_deref());
    text + &debug.map_or_else(String::new, debug_lines)
}

/// A variant in a line: its size, who called the function that crashed, and its file.
fn line_of(variant: &VariantView) -> String {
    let bytes = size::counted(variant.size_after, "byte");
    let caller = variant.caller.as_ref();
    let caller = caller.map_or_else(String::new, |caller| format!(", called by {caller}"));
    format!("{bytes}{caller}: {}", shell_word(&variant.file))
}

/// The first lines of a text, indented alike, under the name `debug`.
fn debug_lines(debug: &str) -> String {
    let count = debug.lines().count();
    let mut text = String::new();
    for (index, line) in debug.lines().take(DEBUG.0).enumerate() {
        let name = if index == 0 { "debug" } else { "" };
        let line = cut(&printable(line), DEBUG.1);
        text.push_str(format!("  {name:<7} {line}").trim_end());
        text.push('\n');
    }
    if count > DEBUG.0 {
        let more = size::counted((count - DEBUG.0) as u64, "more line");
        text.push_str(&format!(
            "  {:<7} … {more} in debug.txt beside the file\n",
            ""
        ));
    }
    text
}

/// The severity by name.
pub(super) fn severity(severity: Severity) -> &'static str {
    match severity {
        Severity::Low => "low",
        Severity::Medium => "medium",
        Severity::High => "high",
    }
}
