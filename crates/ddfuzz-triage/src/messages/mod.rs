//! Crash messages in the output of dying programs: reports of sanitizers, panics of Rust and Go,
//! abort messages of C and C++ libraries.
//!
//! All parsers are pure functions of bytes that a target wrote, which are hostile. On any input
//! they terminate without a panic, in time linear in its length.

mod diagnostics;
mod glibc;
mod go_panic;
mod rust_panic;
mod sanitizer;

pub(crate) use diagnostics::shown_line;
pub use diagnostics::{
    Diagnostics, FatalMessage, assertion, last_error_line, last_line, message, without_numbers,
};
pub(crate) use glibc::HEAP;
pub use glibc::{Abort, abort};
pub use go_panic::{GoPanic, go_panic};
pub use rust_panic::{RustPanic, backtrace_place, is_std_file, rust_panic, short_location};
pub(crate) use rust_panic::{from_panic, is_std_function};
pub(crate) use sanitizer::comes_with;
pub use sanitizer::{Report, ReportAccess, ReportFrame, Tool, report};

pub use crate::reported_object::{ObjectKind, ReportObject};

/// Maximum number of bytes of each line that are parsed in a target's output.
const LONGEST_LINE: usize = 4096;

/// Maximum number of lines that are parsed in a target's output.
const MOST_LINES: usize = 1 << 16;

/// Splits a target's output into lines, at most 65536. Invalid UTF-8 is replaced, and lines over 4
/// KiB are cut.
pub(crate) fn lines(text: &[u8]) -> impl Iterator<Item = String> + Clone {
    text.split(|byte| *byte == b'\n')
        .take(MOST_LINES)
        .map(|line| {
            let line = &line[..line.len().min(LONGEST_LINE)];
            let line = line.strip_suffix(b"\r").unwrap_or(line);
            String::from_utf8_lossy(line).into_owned()
        })
}

/// Returns the beginning of a text: at most `most` bytes, cut at a character boundary.
pub(crate) fn cut(text: &str, most: usize) -> &str {
    let mut end = text.len().min(most);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}

/// Parses the number at the beginning of a text, decimal or `0x`; `None` where there is none.
pub(crate) fn number(text: &str) -> Option<u64> {
    let digits = |text: &str, radix| {
        let end = text
            .find(|byte: char| !byte.is_digit(radix))
            .unwrap_or(text.len());
        u64::from_str_radix(&text[..end], radix).ok()
    };
    match text.strip_prefix("0x") {
        Some(hex) => digits(hex, 16),
        None => digits(text, 10),
    }
}
