//! The block that is printed when a new group's minimization has ended.

use std::path::Path;

use super::text::{printable, shell_word};
use super::{GroupView, hexdump, size};
use crate::store::Kind;
use crate::triage::Severity;

/// Bytes of the reproducer that are shown.
const SHOWN: usize = 16;

/// Eight lines on one group: what, where in the user's code, how far it was reduced, the claim,
/// the reproducer, how to run it again, and where its file and log are.
pub fn block(view: &GroupView) -> String {
    let what = match view.kind {
        Kind::Crash => "crash",
        Kind::Flaky => "flaky crash",
        Kind::Hang => "hang",
        Kind::Oom => "memory that runs away",
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
    let mut text = format!(
        "{what} {}: {}, {} ({})\n",
        view.major.short(),
        printable(&view.class.to_string()),
        severity(view.severity),
        printable(&view.severity_reason),
    );
    for (name, value) in lines {
        text.push_str(&format!("  {name:<7} {}\n", printable(&value)));
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
