//! Text of unknown origin on a terminal, and in Markdown.

use std::path::Path;

pub use ddfuzz_model::files::printable;

/// The first `width` characters, the last of them `…` where there were more.
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

/// The path as one word of a shell command.
pub fn shell_word(path: &Path) -> String {
    let text = path.to_string_lossy();
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"/._-+:,@%".contains(&byte);
    if !text.is_empty() && text.bytes().all(plain) {
        text.into_owned()
    } else {
        format!("'{}'", printable(&text).replace('\'', r"'\''"))
    }
}

/// Text that means nothing to Markdown or HTML, and stays in its cell.
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

/// What stands for a character that begins or ends something in HTML, and in Markdown, too.
pub(super) fn entity(character: char) -> Option<&'static str> {
    match character {
        '<' => Some("&lt;"),
        '>' => Some("&gt;"),
        '&' => Some("&amp;"),
        _ => None,
    }
}

/// Text as code in Markdown. A backquote in it would end it.
pub fn markdown_code(text: &str) -> String {
    format!("`{}`", printable(text).replace('`', "'"))
}

/// One line with at most `shown` bytes from the beginning: hex, then text in bars with `.` for
/// what is not printable ASCII, then how many more there are.
/// `41 0a  |A.|`, `41 41  |AA| and 98 more`, and `(empty)`.
pub fn hex_line(bytes: &[u8], shown: usize) -> String {
    use std::fmt::Write;
    if bytes.is_empty() {
        return "(empty)".to_owned();
    }
    let head = &bytes[..bytes.len().min(shown.max(1))];
    let mut line = String::with_capacity(head.len() * 4 + 24);
    for byte in head {
        // Writing to a string never fails.
        let _ = write!(line, "{byte:02x} ");
    }
    line.push_str(" |");
    line.extend(head.iter().map(|&byte| match byte {
        b' '..=b'~' => byte as char,
        _ => '.',
    }));
    line.push('|');
    if head.len() < bytes.len() {
        let _ = write!(
            line,
            " and {} more",
            super::size::grouped((bytes.len() - head.len()) as u64)
        );
    }
    line
}
