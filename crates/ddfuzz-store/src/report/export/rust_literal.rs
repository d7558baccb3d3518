//! Bytes as Rust writes them.

/// The most bytes of an input that stand in the text; a larger one is a file beside it.
pub const LITERAL_BYTES: usize = 4096;

/// Where the bytes of an input stand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Input<'a> {
    /// In the text.
    Inline(&'a [u8]),
    /// In the file of this path, relative to the text's.
    File(&'a str),
}

impl Input<'_> {
    /// The constant `INPUT`.
    pub(super) fn constant(self) -> String {
        match self {
            Input::Inline(bytes) => {
                format!("const INPUT: &[u8] = {};\n", byte_string(bytes, WIDTH))
            }
            Input::File(name) => format!(
                "const INPUT: &[u8] = include_bytes!({});\n",
                string(name.as_bytes())
            ),
        }
    }
}

/// Characters of a line, more or less.
const WIDTH: usize = 80;

/// A byte string literal, continued on new lines behind each `width` characters and each line end
/// of the bytes. A continuation passes over blanks that follow, so there they are escaped.
pub(super) fn byte_string(bytes: &[u8], width: usize) -> String {
    let mut text = String::from("b\"");
    let mut column = 0;
    let breaks = bytes.len() > width / 2;
    if breaks {
        text.push_str("\\\n    ");
    }
    for (at, &byte) in bytes.iter().enumerate() {
        let begins = column == 0 && breaks;
        let word = match byte {
            b'\n' => "\\n".to_owned(),
            b'\r' => "\\r".to_owned(),
            b'\t' => "\\t".to_owned(),
            b' ' if begins => "\\x20".to_owned(),
            b'"' => "\\\"".to_owned(),
            b'\\' => "\\\\".to_owned(),
            b' '..=b'~' => (byte as char).to_string(),
            _ => format!("\\x{byte:02x}"),
        };
        column += word.len();
        text.push_str(&word);
        let ends = column >= width || byte == b'\n';
        if breaks && ends && at + 1 < bytes.len() {
            text.push_str("\\\n    ");
            column = 0;
        }
    }
    text.push('"');
    text
}

/// A short byte string in one line.
pub(super) fn word(bytes: &[u8]) -> String {
    byte_string(bytes, usize::MAX)
}

/// A string literal; what is not UTF-8 is replaced.
pub(super) fn string(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(bytes);
    let escaped: String = text
        .chars()
        .map(|character| character.escape_default().to_string())
        .collect();
    format!("\"{escaped}\"")
}
