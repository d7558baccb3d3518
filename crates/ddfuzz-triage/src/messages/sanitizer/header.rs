//! Parses the first line of a sanitizer's report, and the kind of error in it.

use crate::messages::sanitizer::Tool;
use crate::messages::{cut, number};

/// The parsed first line of a sanitizer's report: the sanitizer, the kind of error, and the text of
/// the line.
#[derive(Debug)]
pub(super) struct Header {
    pub(super) tool: Tool,
    pub(super) kind: String,
    pub(super) size: Option<u64>,
    pub(super) location: Option<String>,
    /// First line of the sanitizer's report, without parts that differ from run to run (process id,
    /// addresses).
    pub(super) headline: String,
    /// Whether the parsed kind of error is a guess, because the report's first line has unknown
    /// words; the last line of the report may correct it.
    pub(super) guessed: bool,
}

/// Maximum number of bytes that are kept of a source location or the first line of a sanitizer's
/// report.
const LONGEST: usize = 1024;

/// Parses a line of a program's output as the first line of a sanitizer's report; `None` for other
/// lines.
pub(super) fn header(line: &str) -> Option<Header> {
    if let Some((location, message)) = line.split_once(": runtime error: ") {
        return Some(undefined(location, message));
    }
    // The minimal runtime knows neither place nor stack.
    if let Some(check) = line.strip_prefix("ubsan: ") {
        let kind = word(check)?;
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
    let (kind, guessed) = kind_of(tool, rest);
    let size = rest
        .strip_prefix("requested allocation size ")
        .and_then(number);
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
        kind: check(message),
        size: None,
        headline: cut(&format!("runtime error: {message}"), LONGEST).to_owned(),
        location: (!location.is_empty() && location != "<unknown>")
            .then(|| cut(location, LONGEST).to_owned()),
        guessed: false,
    }
}

/// Returns the part of `said`, the first line of a sanitizer's report after the sanitizer's name,
/// that is the same in each run: without registers, threads and ids at its end, and without a last
/// word that is an address (after `on`, `on address` or a colon).
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

/// Returns a line of a sanitizer's report without the process id at its start (`==1234==`).
fn after_process(line: &str) -> &str {
    let Some(rest) = line.trim_start().strip_prefix("==") else {
        return line.trim_start();
    };
    let digits = rest.trim_start_matches(|digit: char| digit.is_ascii_digit());
    digits.strip_prefix("==").unwrap_or(rest)
}

/// Beginnings of those messages of AddressSanitizer that do not start with the kind of error, each
/// with the kind that the last line of the report names (`compiler-rt/lib/asan/asan_errors.cpp`).
#[rustfmt::skip]
const PHRASES: [(&str, &str); 17] = [
    ("attempting double-free", "double-free"),
    ("attempting free on address which was not malloc()-ed", "bad-free"),
    ("attempting to call malloc_usable_size()", "bad-malloc_usable_size"),
    ("attempting to call __sanitizer_get_allocated_size()", "bad-__sanitizer_get_allocated_size"),
    ("calloc parameters overflow", "calloc-overflow"),
    ("reallocarray parameters overflow", "reallocarray-overflow"),
    ("pvalloc parameters overflow", "pvalloc-overflow"),
    ("invalid allocation alignment", "invalid-allocation-alignment"),
    ("invalid alignment requested in aligned_alloc", "invalid-aligned-alloc-alignment"),
    ("invalid alignment requested in posix_memalign", "invalid-posix-memalign-alignment"),
    ("requested allocation size", "allocation-size-too-big"),
    ("specified RSS limit exceeded", "rss-limit-exceeded"),
    ("allocator exceeded the RSS limit", "rss-limit-exceeded"),
    ("allocator is out of memory", "out-of-memory"),
    ("allocator is trying to allocate", "out-of-memory"),
    ("bad parameters to __sanitizer_annotate_", "bad-__sanitizer_annotate_contiguous_container"),
    ("CHECK failed", "check-failed"),
];

/// Parts of UndefinedBehaviorSanitizer's messages, each with the check (`-fsanitize=CHECK`) that
/// prints the message; special parts come before general ones
/// (`compiler-rt/lib/ubsan/ubsan_handlers.cpp`).
#[rustfmt::skip]
const CHECKS: [(&str, &str); 38] = [
    ("unsigned integer overflow", "unsigned-integer-overflow"),
    ("signed integer overflow", "signed-integer-overflow"),
    ("negation of", "signed-integer-overflow"),
    ("division by zero", "division-by-zero"),
    ("cannot be represented in type", "signed-integer-overflow"),
    ("shift exponent", "shift-exponent"),
    ("left shift of", "shift-base"),
    ("shift of", "shift"),
    ("out of bounds for type", "bounds"),
    ("assumption of", "alignment-assumption"),
    ("misaligned address", "alignment"),
    ("address with insufficient space", "object-size"),
    ("insufficient space for an object", "object-size"),
    ("null pointer returned from function", "returns-nonnull-attribute"),
    ("null pointer passed as argument", "nonnull-attribute"),
    ("applying non-zero offset", "pointer-overflow"),
    ("applying zero offset to null", "pointer-overflow"),
    ("pointer index expression", "pointer-overflow"),
    ("addition of unsigned offset", "pointer-overflow"),
    ("subtraction of unsigned offset", "pointer-overflow"),
    ("null pointer", "null"),
    ("execution reached an unreachable program point", "unreachable"),
    ("execution reached the end of a value-returning", "return"),
    ("variable length array bound", "vla-bound"),
    ("implicit conversion", "implicit-conversion"),
    ("outside the range of representable values", "float-cast-overflow"),
    ("which is not a valid value for type 'bool'", "bool"),
    ("which is not a valid value for type '_Bool'", "bool"),
    ("which is not a valid value for type 'BOOL'", "bool"),
    ("which is not a valid value for type", "enum"),
    ("through pointer to incorrect function type", "function"),
    ("which does not point to an object of type", "vptr"),
    ("passing zero to", "builtin"),
    ("passing zero to __builtin", "builtin"),
    ("control flow integrity check", "cfi"),
    ("invalid Objective-C cast", "objc-cast"),
    ("nullability", "nullability"),
    ("load of value", "enum"),
];

/// Maximum length in bytes of the kind of error that is parsed from a sanitizer's report.
const LONGEST_KIND: usize = 64;

/// Returns the kind of error, such as `heap-buffer-overflow`, in the first line of a sanitizer's
/// report, and whether it is a guess. `said` is the text after the sanitizer's name.
pub(super) fn kind_of(tool: Tool, said: &str) -> (String, bool) {
    let phrase = PHRASES.iter().find(|(begin, _)| said.starts_with(begin));
    if let Some((_, kind)) = phrase {
        return ((*kind).to_owned(), false);
    }
    match tool {
        // "data race on vptr (ctor/dtor vs virtual call) (pid=1)"
        Tool::Tsan if !said.starts_with("SEGV") => {
            let end = said.find(" (").unwrap_or(said.len());
            (dashed(&said[..end]), false)
        }
        Tool::Lsan if said.starts_with("detected memory leaks") => {
            ("direct-leak".to_owned(), false)
        }
        _ => {
            let kind = word(said).unwrap_or_default();
            let known = kind.contains('-') || kind.bytes().all(|byte| byte.is_ascii_uppercase());
            (kind, !known)
        }
    }
}

/// Returns the UndefinedBehaviorSanitizer check (`-fsanitize=CHECK`) that prints `message`; `other`
/// where it is unknown.
pub(super) fn check(message: &str) -> String {
    let found = CHECKS.iter().find(|(part, _)| message.contains(part));
    found.map_or("other", |(_, check)| *check).to_owned()
}

/// Returns the first word of a text, without punctuation at its end; `None` where there is none.
pub(super) fn word(text: &str) -> Option<String> {
    let plain = |byte: char| byte.is_ascii_alphanumeric() || matches!(byte, '-' | '_');
    let first = text.split_whitespace().next()?;
    let end = first.find(|byte| !plain(byte)).unwrap_or(first.len());
    let word = cut(&first[..end], LONGEST_KIND);
    (!word.is_empty()).then(|| word.to_owned())
}

/// Returns the words of a text joined by dashes; characters other than letters and digits are
/// removed.
fn dashed(text: &str) -> String {
    let words = text
        .split(|byte: char| !byte.is_ascii_alphanumeric())
        .filter(|word| !word.is_empty());
    cut(&words.collect::<Vec<_>>().join("-"), LONGEST_KIND).to_owned()
}
