//! Files that know whether somebody has edited them: the first line holds the blake3 of the rest.

/// What the first line begins with; the 64 hex digits follow.
const BEGIN: &str = "// Written by `ddfuzz export`, which replaces it unless it is edited: ";

/// The text under a first line that seals it.
pub(super) fn seal(text: &str) -> String {
    format!("{BEGIN}{}\n{text}", blake3::hash(text.as_bytes()).to_hex())
}

/// Whether this is a sealed text that nobody has edited. A change of line ends, as some version
/// control systems make, is none.
pub(super) fn is_intact(bytes: &[u8]) -> bool {
    let Ok(text) = std::str::from_utf8(bytes) else {
        return false;
    };
    let text = text.replace("\r\n", "\n");
    text.split_once('\n').is_some_and(|(first, rest)| {
        first.strip_prefix(BEGIN) == Some(blake3::hash(rest.as_bytes()).to_hex().as_str())
    })
}

/// The hash of other bytes, as a sealed text names them.
pub(super) fn hash(bytes: &[u8]) -> String {
    blake3::hash(bytes).to_hex().to_string()
}
