//! Formatting of untrusted text: cutting, shell words, Markdown, bytes in hex.

use std::path::Path;

pub use ddfuzz_model::files::printable;

/// Shortens a text of more than `width` characters to that width, with `…` at the end in place of
/// what is cut.
pub fn cut(text: &str, width: usize) -> String {
    if text.chars().count() <= width {
        return text.to_owned();
    }
    let mut shown: String = text.chars().take(width.saturating_sub(1)).collect();
    if width > 0 {
        shown.push('…');
    }
    shown
}

/// Quotes a path as one word of a shell command, unless it needs no quotes. Control characters and
/// bytes that are not UTF-8 are escaped as bash, ksh and zsh read them (`$'…'`).
pub fn shell_word(path: &Path) -> String {
    let bytes = path.as_os_str().as_encoded_bytes();
    let plain = |byte: &u8| byte.is_ascii_alphanumeric() || b"/._-+:,@%".contains(byte);
    let text = std::str::from_utf8(bytes).ok();
    match text.filter(|text| printable(text) == **text) {
        Some(text) if !text.is_empty() && bytes.iter().all(plain) => text.to_owned(),
        Some(text) => format!("'{}'", text.replace('\'', r"'\''")),
        None => {
            let mut word = "$'".to_owned();
            for byte in bytes {
                match byte {
                    b'\n' => word.push_str(r"\n"),
                    b'\'' | b'\\' => word.extend(['\\', char::from(*byte)]),
                    b' '..=b'~' => word.push(char::from(*byte)),
                    // Three octal digits: what follows cannot be taken for a further one.
                    other => word.push_str(&format!("\\{other:03o}")),
                }
            }
            word + "'"
        }
    }
}

/// Quotes a path as one word of a shell command ([`shell_word`]) so that no program takes it for an
/// option: a path that begins with `-` gets `./` in front.
pub fn shell_operand(path: &Path) -> String {
    match path.as_os_str().as_encoded_bytes().first() {
        Some(b'-') => shell_word(&Path::new(".").join(path)),
        _ => shell_word(path),
    }
}

/// Escapes control characters and markup in a text for a cell of a Markdown table.
pub fn escaped_markdown(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for character in printable(text).chars() {
        if let Some(entity) = entity(character) {
            shown.push_str(entity);
            continue;
        }
        match character {
            '\\' | '`' | '*' | '_' | '[' | ']' | '|' | '#' | '~' | '@' => {
                shown.extend(['\\', character]);
            }
            _ => shown.push(character),
        }
    }
    shown
}

/// Returns the HTML entity of `<`, `>` or `&`; `None` for other characters.
pub(super) fn entity(character: char) -> Option<&'static str> {
    match character {
        '<' => Some("&lt;"),
        '>' => Some("&gt;"),
        '&' => Some("&amp;"),
        _ => None,
    }
}

/// Formats text as inline code in Markdown, with backquotes replaced.
pub fn markdown_code(text: &str) -> String {
    format!("`{}`", printable(text).replace('`', "'"))
}

/// Formats the first `shown` bytes as one line of hex and ASCII: `41 0a  |A.|`, `41 41  |AA| and 98
/// more`, `(empty)`.
pub fn hex_line(bytes: &[u8], shown: usize) -> String {
    if bytes.is_empty() {
        return "(empty)".to_owned();
    }
    let head = &bytes[..bytes.len().min(shown.max(1))];
    let mut line: String = head.iter().map(|byte| format!("{byte:02x} ")).collect();
    line.push_str(" |");
    line.extend(head.iter().map(|&byte| match byte {
        b' '..=b'~' => byte as char,
        _ => '.',
    }));
    line.push('|');
    let more = (bytes.len() - head.len()) as u64;
    if more > 0 {
        line += &format!(" and {} more", super::size::grouped(more));
    }
    line
}
