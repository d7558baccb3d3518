//! The pieces of a text that can be left out of it: lines, tokens.
//!
//! Bytes and characters need no help: a slice is a sequence of its items. Neither do arguments,
//! environment variables and list items.

/// The lines of a text, each with its line end; the last one may have none. One behind the other
/// they are the text.
///
/// ```
/// use ddfuzz_delta::{Outcome, ddmin, lines};
///
/// let program = b"int x;\nint *p = 0;\n*p = 1;\nreturn;\n";
/// let crashes = |kept: &[&[u8]]| match kept.contains(&b"*p = 1;\n".as_slice()) {
///     true => Outcome::Fail,
///     false => Outcome::Pass,
/// };
/// assert_eq!(ddmin(&lines(program), crashes)?.concat(), b"*p = 1;\n");
/// # Ok::<(), ddfuzz_delta::NotFailing>(())
/// ```
pub fn lines(text: &[u8]) -> Vec<&[u8]> {
    text.split_inclusive(|byte| *byte == b'\n').collect()
}

/// The tokens of a text: words (letters, digits, `_`, and all bytes beyond ASCII), runs of blanks,
/// line ends, and every other byte by itself. One behind the other they are the text.
///
/// ```
/// use ddfuzz_delta::tokens;
///
/// let found = tokens(b"if (x1 >= 10)\n");
/// let expected: [&[u8]; 10] = [b"if", b" ", b"(", b"x1", b" ", b">", b"=", b" ", b"10", b")"];
/// assert_eq!(found[..10], expected);
/// assert_eq!(found[10..], [b"\n"]);
/// ```
pub fn tokens(text: &[u8]) -> Vec<&[u8]> {
    let is_word = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'_' || !byte.is_ascii();
    let is_blank = |byte: &u8| matches!(byte, b' ' | b'\t');
    let joined =
        |one: &u8, next: &u8| (is_word(one) && is_word(next)) || (is_blank(one) && is_blank(next));
    text.chunk_by(joined).collect()
}
