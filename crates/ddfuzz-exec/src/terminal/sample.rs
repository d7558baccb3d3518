//! A text to work on.

use std::fmt::Write;
use std::sync::LazyLock;

/// Lines of the ordinary kind.
const LINES: usize = 240;
/// Characters of the long line.
const LONG: usize = 1200;

/// The text that `@@` in the arguments of a target at a terminal stands for: always the same some
/// hundred lines, with words, numbers, tabs, brackets, empty lines, a very long one, characters of
/// UTF-8 of all widths, bytes that are none, and control characters.
pub fn sample_text() -> &'static [u8] {
    static TEXT: LazyLock<Vec<u8>> = LazyLock::new(make);
    &TEXT
}

const WORDS: [&str; 16] = [
    "the", "quick", "brown", "fox", "jumps", "over", "a", "lazy", "dog", "and", "then", "sleeps",
    "in", "warm", "summer", "grass",
];

fn make() -> Vec<u8> {
    let mut text = String::new();
    for line in 1..=LINES {
        match line % 12 {
            3 => {}
            5 => text.push_str("\tint main(void) { return f(a[1], \"x\\n\"); }\t/* indented */"),
            8 => text.push_str("Ünïcödé: ñandú, Σίσυφος, 漢字かな, 🦀 e\u{301} \u{200b}|"),
            _ => sentence(&mut text, line),
        }
        text.push('\n');
    }
    let long: String = (0..LONG)
        .map(|at| WORDS[at % 16].as_bytes()[0] as char)
        .collect();
    text.push_str(&long);
    let mut bytes = text.into_bytes();
    // What terminals write bold and underlined, an escape sequence, controls, no UTF-8, no end.
    bytes.extend(b"\nN\x08NA\x08AM\x08ME\x08E _\x08u_\x08n_\x08d_\x08e_\x08r\n");
    bytes.extend(b"\x1b[1mbold\x1b[0m \x07 \x0c \x00 \x01\x7f \xff\xfe \xc3( \xe2\x82\n");
    bytes.extend(b"https://example.org/a?b=c (see section 3.1)\r\nno newline at the end");
    bytes
}

fn sentence(text: &mut String, line: usize) {
    let _ = write!(text, "{line:3} "); // a string takes everything
    for word in 0..5 + line * 7 % 6 {
        text.push_str(WORDS[(line * 5 + word * word) % 16]);
        text.push(' ');
    }
    let _ = write!(text, "{}.", line * line * 37 % 1009);
}
