//! The escapes of C in texts of the command line and of lists: `\n`, `\x1b`, `\033`.

/// A text with an escape that C does not have.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0} is not an escape of C; write \\\\ for a backslash")]
pub struct WrongEscape(String);

/// The bytes that a text with C's escapes stands for: `\a \b \e \f \n \r \t \v \\ \' \" \?`, one
/// to three octal digits, or `\x` with one or two hexadecimal digits.
///
/// # Errors
/// On a backslash before anything else, at the end, and on octal numbers over 377.
pub fn unescape(text: &[u8]) -> Result<Vec<u8>, WrongEscape> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text;
    while let [first, behind @ ..] = rest {
        if *first != b'\\' {
            bytes.push(*first);
            rest = behind;
            continue;
        }
        let (byte, length) = escape(behind).ok_or_else(|| {
            WrongEscape(String::from_utf8_lossy(&rest[..rest.len().min(4)]).into())
        })?;
        bytes.push(byte);
        rest = &behind[length..];
    }
    Ok(bytes)
}

/// What stands behind a backslash: its byte, and how many characters it takes.
fn escape(behind: &[u8]) -> Option<(u8, usize)> {
    let simple = |byte| Some((byte, 1));
    match behind.first()? {
        b'a' => simple(0x07),
        b'b' => simple(0x08),
        b'e' => simple(0x1b),
        b'f' => simple(0x0c),
        b'n' => simple(b'\n'),
        b'r' => simple(b'\r'),
        b't' => simple(b'\t'),
        b'v' => simple(0x0b),
        &byte @ (b'\\' | b'\'' | b'"' | b'?') => simple(byte),
        b'x' => {
            let (byte, digits) = number(&behind[1..], 2, 16)?;
            Some((byte, 1 + digits))
        }
        _ => number(behind, 3, 8),
    }
}

/// The number that the first digits are, at most `most` of them, and how many there are.
fn number(text: &[u8], most: usize, radix: u32) -> Option<(u8, usize)> {
    let digits = text
        .iter()
        .take(most)
        .take_while(|byte| char::from(**byte).is_digit(radix))
        .count();
    let text = std::str::from_utf8(&text[..digits]).ok()?;
    Some((u8::from_str_radix(text, radix).ok()?, digits))
}
