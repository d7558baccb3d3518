//! Makes text of unknown origin harmless for terminals and readers.

/// Returns the text with control and invisible format characters (also line ends and tabs) replaced
/// by Rust escapes like `\n` or `\u{200b}`, because they could move a terminal's cursor or change
/// the writing direction.
pub fn printable(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for character in text.chars() {
        if is_invisible(character) {
            shown.extend(character.escape_default());
        } else {
            shown.push(character);
        }
    }
    shown
}

/// Makes text [printable](printable()) and escapes it for HTML and SVG, in an element or a quoted
/// attribute.
pub fn escaped_markup(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for character in printable(text).chars() {
        match character {
            '&' => shown.push_str("&amp;"),
            '<' => shown.push_str("&lt;"),
            '>' => shown.push_str("&gt;"),
            '"' => shown.push_str("&quot;"),
            '\'' => shown.push_str("&#39;"),
            // XML 1.0 does not allow them.
            '\u{fffe}' | '\u{ffff}' => shown.push('?'),
            other => shown.push(other),
        }
    }
    shown
}

/// Escapes text as [`escaped_markup`] does, and leaves line ends and tabs as they are.
pub fn escaped_lines(text: &str) -> String {
    let parts = text.split_inclusive(['\n', '\t']).map(|part| {
        let bare = part.trim_end_matches(['\n', '\t']);
        escaped_markup(bare) + &part[bare.len()..]
    });
    parts.collect()
}

/// Returns true if a character is a control character, changes the writing direction, or has no
/// width.
fn is_invisible(character: char) -> bool {
    character.is_control()
        || matches!(
            character,
            '\u{ad}'
                | '\u{61c}'
                | '\u{180e}'
                | '\u{200b}'..='\u{200f}'
                | '\u{2028}'..='\u{202e}'
                | '\u{2060}'..='\u{206f}'
                | '\u{feff}'
                | '\u{fff9}'..='\u{fffb}'
                | '\u{e0000}'..='\u{e007f}'
        )
}
