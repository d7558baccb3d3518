//! The lines of what a target wrote, of bounded number and length.

/// How much of a line is read, in bytes: a mangled name and a path stand in one.
const LONGEST: usize = 4096;

/// How many lines are read: 64 KiB of the shortest lines.
const MOST: usize = 1 << 16;

/// The lines of a text; what is no UTF-8 is replaced, and long lines are cut.
pub(super) fn lines(text: &[u8]) -> impl Iterator<Item = String> + Clone {
    text.split(|byte| *byte == b'\n').take(MOST).map(|line| {
        let line = &line[..line.len().min(LONGEST)];
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        String::from_utf8_lossy(line).into_owned()
    })
}

/// A text of which at most `most` bytes are kept, cut between two characters.
pub(super) fn cut(text: &str, most: usize) -> &str {
    let mut end = text.len().min(most);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}
