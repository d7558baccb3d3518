//! What kind of error a report is about, in the sanitizer's own words.

use super::super::lines::cut;
use super::Tool;

/// Beginnings of AddressSanitizer's phrases that do not begin with their kind, and the kind that
/// the last line of the report names (`compiler-rt/lib/asan/asan_errors.cpp`).
const PHRASES: [(&str, &str); 17] = [
    ("attempting double-free", "double-free"),
    (
        "attempting free on address which was not malloc()-ed",
        "bad-free",
    ),
    (
        "attempting to call malloc_usable_size()",
        "bad-malloc_usable_size",
    ),
    (
        "attempting to call __sanitizer_get_allocated_size()",
        "bad-__sanitizer_get_allocated_size",
    ),
    ("calloc parameters overflow", "calloc-overflow"),
    ("reallocarray parameters overflow", "reallocarray-overflow"),
    ("pvalloc parameters overflow", "pvalloc-overflow"),
    (
        "invalid allocation alignment",
        "invalid-allocation-alignment",
    ),
    (
        "invalid alignment requested in aligned_alloc",
        "invalid-aligned-alloc-alignment",
    ),
    (
        "invalid alignment requested in posix_memalign",
        "invalid-posix-memalign-alignment",
    ),
    ("requested allocation size", "allocation-size-too-big"),
    ("specified RSS limit exceeded", "rss-limit-exceeded"),
    ("allocator exceeded the RSS limit", "rss-limit-exceeded"),
    ("allocator is out of memory", "out-of-memory"),
    ("allocator is trying to allocate", "out-of-memory"),
    (
        "bad parameters to __sanitizer_annotate_",
        "bad-__sanitizer_annotate_contiguous_container",
    ),
    ("CHECK failed", "check-failed"),
];

/// What UndefinedBehaviorSanitizer says, and the check (`-fsanitize=CHECK`) that says it, the
/// more special before the more general (`compiler-rt/lib/ubsan/ubsan_handlers.cpp`).
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
    (
        "null pointer returned from function",
        "returns-nonnull-attribute",
    ),
    ("null pointer passed as argument", "nonnull-attribute"),
    ("applying non-zero offset", "pointer-overflow"),
    ("applying zero offset to null", "pointer-overflow"),
    ("pointer index expression", "pointer-overflow"),
    ("addition of unsigned offset", "pointer-overflow"),
    ("subtraction of unsigned offset", "pointer-overflow"),
    ("null pointer", "null"),
    (
        "execution reached an unreachable program point",
        "unreachable",
    ),
    ("execution reached the end of a value-returning", "return"),
    ("variable length array bound", "vla-bound"),
    ("implicit conversion", "implicit-conversion"),
    (
        "outside the range of representable values",
        "float-cast-overflow",
    ),
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

/// The longest kind that is kept, in bytes.
const LONGEST: usize = 64;

/// The kind of which `said` is the text behind the tool's name, and whether it was only guessed.
pub(super) fn of(tool: Tool, said: &str) -> (String, bool) {
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

/// The check whose message this is; `other` where it is not known.
pub(super) fn check(message: &str) -> String {
    let found = CHECKS.iter().find(|(part, _)| message.contains(part));
    found.map_or("other", |(_, check)| *check).to_owned()
}

/// The first word, without punctuation behind it.
pub(super) fn word(text: &str) -> Option<String> {
    let plain = |byte: char| byte.is_ascii_alphanumeric() || matches!(byte, '-' | '_');
    let first = text.split_whitespace().next()?;
    let end = first.find(|byte| !plain(byte)).unwrap_or(first.len());
    let word = cut(&first[..end], LONGEST);
    (!word.is_empty()).then(|| word.to_owned())
}

/// The words, joined by dashes; what is no letter or digit is left out.
fn dashed(text: &str) -> String {
    let words = text
        .split(|byte: char| !byte.is_ascii_alphanumeric())
        .filter(|word| !word.is_empty());
    cut(&words.collect::<Vec<_>>().join("-"), LONGEST).to_owned()
}

/// The number that a text begins with, decimal or `0x`.
pub(super) fn number(text: &str) -> Option<u64> {
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
