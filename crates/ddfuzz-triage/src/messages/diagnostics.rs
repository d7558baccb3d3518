//! The messages that a run printed about its end: which of them explains it, and the one message
//! that people are shown.

use crate::Class;
use crate::messages::{
    Abort, GoPanic, Report, ReportAccess, RustPanic, Tool, abort, go_panic, lines, report,
    rust_panic,
};
use ddfuzz_exec::{CrashMessages, Ended, RUST_PANIC};
use ddfuzz_model::files::printable;

/// A printed message that explains why a program ended: a sanitizer's report, or a Rust or Go
/// panic.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FatalMessage {
    /// The report of a sanitizer, such as AddressSanitizer.
    Report(Box<Report>),
    /// A panic message that Rust's panic hook printed.
    RustPanic(RustPanic),
    /// A panic or fatal error that Go's runtime printed.
    GoPanic(GoPanic),
}

/// The messages of a run that explain its end: the parsed sanitizer report or panic, the abort
/// message, and the last bytes of stderr.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Diagnostics {
    /// Sanitizer report or panic that explains the end of the run; `None` where there is neither.
    pub fatal: Option<FatalMessage>,
    /// Abort message of a C or C++ library; `None` if the run printed none, or did not end by
    /// `SIGABRT`.
    pub abort: Option<Abort>,
    /// The last bytes that the run wrote to stderr, as far as they were recorded.
    pub stderr: Vec<u8>,
    /// Whether the sanitizer's report comes from the file to which only the sanitizer writes, so
    /// that the program cannot have printed it by chance.
    filed: bool,
}

impl Diagnostics {
    /// Parses the output `said` of a run for the messages (reports, panics, aborts) that explain
    /// why it ended with `ended`.
    pub fn of(ended: Ended, said: CrashMessages) -> Diagnostics {
        Diagnostics::of_process(ended, said, |_| true)
    }

    /// Parses the output `said` of a run that ended with `ended`, as [`Diagnostics::of`] does. A
    /// sanitizer's report on stderr counts only if `may_have` says that the process that died may
    /// contain this sanitizer; otherwise the program has printed that text itself.
    pub fn of_process(
        ended: Ended,
        said: CrashMessages,
        may_have: impl FnOnce(Tool) -> bool,
    ) -> Diagnostics {
        let aborted = ended == Ended::Signal(libc::SIGABRT);
        let filed = report(&said.report).filter(explains);
        let mut diagnostics = Diagnostics {
            filed: filed.is_some(),
            ..Diagnostics::default()
        };
        let written = || {
            let written = report(&said.stderr).filter(|_| aborted);
            written.filter(|it| is_sure(it) && explains(it) && may_have(it.tool))
        };
        diagnostics.fatal = filed
            .or_else(written)
            .map(|report| FatalMessage::Report(Box::new(report)));
        let panicked = aborted || ended == Ended::Exit(RUST_PANIC);
        if diagnostics.fatal.is_none() && panicked {
            diagnostics.fatal = rust_panic(&said.stderr).map(FatalMessage::RustPanic);
        }
        if diagnostics.fatal.is_none() && aborted {
            diagnostics.fatal = go_panic(&said.stderr).map(FatalMessage::GoPanic);
        }
        diagnostics.abort = abort(&said.stderr).filter(|_| aborted);
        diagnostics.stderr = said.stderr;
        diagnostics
    }

    /// Checks whether the run, which ended with `ended`, crashed (docs/src/keys.md): by a crash
    /// signal, by the exit status `crash_exit`, or by an exit after a Rust panic or a report in the
    /// sanitizer's own file.
    pub fn is_crash(&self, ended: Ended, crash_exit: Option<i32>) -> bool {
        let said = match (&self.fatal, ended) {
            (Some(FatalMessage::Report(_)), Ended::Exit(_)) => self.filed,
            (Some(FatalMessage::RustPanic(_)), Ended::Exit(_)) => true,
            _ => false,
        };
        said || ended.is_crash(crash_exit)
    }

    /// Returns the one message about the crash that people are shown: that of a panic, the first
    /// line of a sanitizer's report, a failed assertion, or an abort reason. `aborts` is the abort
    /// message in the C library's memory. `None` where no message about the crash is found.
    pub fn message(&self, ended: Ended, class: &Class, aborts: Option<&str>) -> Option<String> {
        let gives_up = ended == Ended::Signal(libc::SIGABRT)
            || matches!(class.0.as_str(), "trap" | "ill")
            || class.exit_status().is_some();
        let text = match &self.fatal {
            Some(FatalMessage::RustPanic(panic)) => panic.message.clone(),
            Some(FatalMessage::GoPanic(panic)) => panic.message.clone(),
            Some(FatalMessage::Report(report)) => of_report(report),
            _ => {
                let what = self.abort.as_ref().and_then(|abort| abort.what.as_deref());
                match (aborts, what) {
                    (Some(aborts), Some(what)) => format!("{}: {what}", aborts.trim()),
                    (Some(aborts), None) => aborts.to_owned(),
                    (None, _) if gives_up => last_error_line(&self.stderr)?,
                    (None, _) => return None,
                }
            }
        };
        message(&text)
    }

    /// Returns the sanitizer's report; `None` if no report explains the end of the run.
    pub fn report(&self) -> Option<&Report> {
        match &self.fatal {
            Some(FatalMessage::Report(report)) => Some(report),
            _ => None,
        }
    }
}

/// Checks whether a sanitizer's report explains the end of a program: false if it says only that
/// the program has called `abort`, which its own messages and its stack explain better.
fn explains(report: &Report) -> bool {
    report.signal_class() != Some("abrt")
}

/// Checks whether a text that was parsed as a sanitizer's report certainly is one. A report of
/// UndefinedBehaviorSanitizer must have a stack: other programs print `runtime error`, too.
fn is_sure(report: &Report) -> bool {
    report.tool != Tool::Ubsan || !report.stack.is_empty()
}

/// Maximum number of lines of a message about a crash that people are shown.
const LINES: usize = 16;
/// Maximum number of characters of each line of a message about a crash that people are shown.
const LINE: usize = 400;
/// Maximum number of characters of a whole message about a crash that people are shown.
const LONGEST: usize = 2000;
/// Number of lines at the end of stderr, not counting blank ones, in which an error message is
/// searched for.
const LAST: usize = 8;

/// Words in lower case that mark a line of stderr as an error message.
#[rustfmt::skip]
const ALARMS: [&str; 16] = [
    "abort", "assert", "bad ", "bug", "cannot", "check", "corrupt", "error", "exception", "fail",
    "fatal", "impossible", "invalid", "overflow", "panic", "unexpected",
];

/// Prefixes of lines on stderr that libFuzzer and sanitizers print around a crash, and that are
/// therefore not taken for the program's error message.
#[rustfmt::skip]
const NOISE: [&str; 10] = [
    "==", "#", "INFO: ", "NOTE: ", "SUMMARY: ", "Running: ", "Executed ", "MS: ", "Base64: ",
    "artifact_prefix",
];

/// Makes a text that the target printed safe to show: control and format characters are escaped,
/// and the length and number of lines are bounded. `None` where nothing is left.
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

/// Returns a text cut to `most` characters, with `…` at the end if something was cut.
fn shortened(text: &str, most: usize) -> String {
    match text.char_indices().nth(most - 1) {
        Some((end, last)) if end + last.len_utf8() < text.len() => format!("{}…", &text[..end]),
        _ => text.to_owned(),
    }
}

/// Describes a sanitizer's report in one line for people: its first line without process ids,
/// addresses and registers, and then the faulty access or the leak.
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

/// Returns the last error message in the last 8 non-blank lines of stderr: a line with a word such
/// as `error` or `fail` that is not libFuzzer's or a sanitizer's. `None` where there is none.
pub fn last_error_line(stderr: &[u8]) -> Option<String> {
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

/// Returns the condition of a failed assertion, without the numbers in it: the part `…` of
/// ``Assertion `…' failed`` in `said`, a message of the C library or stderr; `None` where there is
/// none.
pub fn assertion(said: &str) -> Option<String> {
    let begin = said.rfind("Assertion `")? + "Assertion `".len();
    let rest = &said[begin..];
    let end = rest.find("' failed").unwrap_or(rest.len());
    Some(without_numbers(&rest[..end]))
}

/// Returns the last line of a text that is not blank, with its numbers taken out, so that it is the
/// same in each run; `None` if all lines are blank.
pub fn last_line(said: &str) -> Option<String> {
    said.lines()
        .rev()
        .find(|line| !line.trim().is_empty())
        .map(without_numbers)
}

/// Largest number of characters of the last line of stderr that messages show.
const SHOWN: usize = 120;

/// Returns the last line of stderr that is not blank, cut and without control characters, as
/// messages show it; `None` if there is none.
pub(crate) fn shown_line(stderr: &[u8]) -> Option<String> {
    let last = lines(stderr)
        .filter(|line| !line.trim().is_empty())
        .last()?;
    Some(printable(last.trim()).chars().take(SHOWN).collect())
}

/// Returns a text without its decimal and `0x` numbers, because they often are addresses or
/// lengths.
pub fn without_numbers(text: &str) -> String {
    let mut result = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let hex = rest
            .strip_prefix("0x")
            .filter(|digits| digits.starts_with(|digit: char| digit.is_ascii_hexdigit()));
        rest = match hex {
            Some(digits) => digits.trim_start_matches(|digit: char| digit.is_ascii_hexdigit()),
            None if first.is_ascii_digit() => {
                rest.trim_start_matches(|digit: char| digit.is_ascii_digit())
            }
            None => {
                result.push(first);
                &rest[first.len_utf8()..]
            }
        };
    }
    result
}
