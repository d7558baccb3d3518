//! Texts of a program that no input has: messages, formats, names of files and functions.

/// What compilers and libraries leave behind.
const BANNERS: [&str; 9] = [
    "GCC: ", "clang", "GNU C", "rustc ", "GLIBC_", "GLIBCXX_", "__", "_Z", "_ITM",
];
/// How names of source files and libraries end.
const FILES: [&str; 11] = [
    ".c", ".h", ".cc", ".cpp", ".hpp", ".rs", ".go", ".so", ".S", ".mo", ".cxx",
];
/// Tables of characters, not words.
const TABLES: [&str; 5] = [
    "0123456789",
    "abcdefghij",
    "ABCDEFGHIJ",
    "ABCDEFabcdef",
    "(null)",
];
/// What the C library says of errors and signals, by its beginning; in one word or two, for longer
/// ones are sentences.
const MESSAGES: [&str; 10] = [
    "Success",
    "Unknown ",
    "Invalid ",
    "Usage",
    "usage",
    "Segmentation fault",
    "Aborted",
    "Killed",
    "Permission denied",
    "Interrupted",
];
/// A text with more blanks between words than this is a sentence.
const MOST_BLANKS: usize = 2;

/// Whether this is none that a target would look for in its input.
pub(super) fn is_noise(bytes: &[u8]) -> bool {
    let Ok(text) = std::str::from_utf8(bytes) else {
        return true;
    };
    let trimmed = text.trim();
    let mut characters: Vec<char> = text.chars().collect();
    characters.sort_unstable();
    characters.dedup();
    characters.len() < 2
        || has_conversion(bytes)
        || is_sentence(trimmed)
        || is_path(trimmed)
        || trimmed.contains("::")
        || BANNERS
            .iter()
            .chain(&MESSAGES)
            .any(|start| trimmed.starts_with(start))
        || TABLES.iter().any(|table| trimmed.contains(table))
}

/// Whether it has a conversion of `printf`: a `%` that is not doubled, then flags and digits, then
/// its letter.
fn has_conversion(text: &[u8]) -> bool {
    let mut rest = text;
    while let Some(at) = rest.iter().position(|byte| *byte == b'%') {
        rest = &rest[at + 1..];
        if let [b'%', behind @ ..] = rest {
            rest = behind;
            continue;
        }
        let flag = |byte: &&u8| !b"-+ #0123456789.*hljztL".contains(byte);
        if (rest.iter().find(flag)).is_some_and(|letter| b"diouxXeEfgGcspn".contains(letter)) {
            return true;
        }
    }
    false
}

/// Words in a row, what stands before something that is told, or what an `assert` claims.
fn is_sentence(text: &str) -> bool {
    let blanks = text.split_whitespace().count().saturating_sub(1);
    let is_told = text.ends_with(':') && blanks > 0;
    let is_claim = [" == ", " != ", " >= ", " > 0"]
        .iter()
        .any(|sign| text.contains(sign));
    is_claim || blanks > MOST_BLANKS || text.contains(": ") || is_told || text.ends_with("...")
}

fn is_path(text: &str) -> bool {
    let is_absolute = text.len() > 1 && text.starts_with('/') && !text.starts_with("//");
    let parts = text.split('/').filter(|part| !part.is_empty()).count();
    let has_end = |end: &&str| text.len() > end.len() && text.ends_with(*end);
    is_absolute && !text.contains('*')
        || parts > 2
        || text.contains(".so.")
        || FILES.iter().any(has_end)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_inputs_are_made_of_stays() {
        for text in [
            "IHDR",
            "<!DOCTYPE",
            "%%EOF",
            "Content-Length",
            "/*",
            "*/",
            "true",
            "a=b",
            "100%",
            "end of file",
            ".br",
            "\r\n\r\n",
            "HTTP/1.1",
            "name:",
        ] {
            assert!(!is_noise(text.as_bytes()), "{text}");
        }
    }

    #[test]
    fn messages_formats_and_paths_go() {
        for text in [
            "%s: %d",
            "value %-08lx",
            "/usr/lib/x",
            "main.c",
            "libc.so.6",
            "GCC: (Debian 12)",
            "no such file or directory",
            "error: bad",
            "core::fmt",
            "____",
            "0123456789abcdef",
            "_ZN3foo",
            "wait...",
            "src/x/main.rs",
        ] {
            assert!(is_noise(text.as_bytes()), "{text}");
        }
    }
}
