//! Splits a stream of bytes into keystrokes.

/// One action at a terminal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stroke<'a> {
    /// These bytes are typed: a key.
    Key(&'a [u8]),
    /// The window gets another size.
    Resize {
        /// Lines.
        rows: u16,
        /// Characters in a line.
        columns: u16,
    },
}

const ESC: u8 = 0x1b;
/// The largest size of a window, in lines or characters.
const LARGEST: u16 = 500;

/// The keystrokes that `bytes` are: an escape sequence (`ESC [` up to its final byte, `ESC O` and
/// one more, `ESC` and a character), a character of UTF-8, or else a byte. Xterm's
/// `ESC [ 8 ; rows ; columns t`, with sizes from 1 to 500, changes the size of the window.
pub(super) fn strokes(bytes: &[u8]) -> impl Iterator<Item = Stroke<'_>> {
    let mut rest = bytes;
    std::iter::from_fn(move || {
        let (key, behind) = rest
            .split_at_checked(length(rest))
            .filter(|(key, _)| !key.is_empty())?;
        rest = behind;
        Some(resized(key).unwrap_or(Stroke::Key(key)))
    })
}

/// How many bytes the first key has; 0 where there is none.
fn length(bytes: &[u8]) -> usize {
    match bytes {
        [ESC, b'[', b'M', report @ ..] => 3 + report.len().min(3), // of a mouse
        [ESC, b'[', rest @ ..] => 2 + control_sequence(rest),
        [ESC, b'O', _, ..] => 3,
        [ESC, ESC, ..] => 1,
        [ESC, rest @ ..] => 1 + character(rest),
        _ => character(bytes),
    }
}

/// The length of a control sequence: parameters, intermediate bytes, and the final byte.
fn control_sequence(bytes: &[u8]) -> usize {
    let parameters = bytes.iter().take_while(|byte| (0x20..0x40).contains(*byte));
    let length = parameters.count();
    let is_final = |byte: &u8| (0x40..0x7f).contains(byte);
    length + usize::from(bytes.get(length).is_some_and(is_final))
}

/// How many bytes the first character has.
fn character(bytes: &[u8]) -> usize {
    let width = match bytes.first() {
        None => 0,
        Some(0xc2..=0xdf) => 2,
        Some(0xe0..=0xef) => 3,
        Some(0xf0..=0xf4) => 4,
        Some(_) => 1,
    };
    match bytes.get(..width) {
        Some(whole) if width < 2 || std::str::from_utf8(whole).is_ok() => width,
        _ => 1,
    }
}

fn resized(key: &[u8]) -> Option<Stroke<'static>> {
    let sizes = key.strip_prefix(b"\x1b[8;")?.strip_suffix(b"t")?;
    let (rows, columns) = std::str::from_utf8(sizes).ok()?.split_once(';')?;
    let size = |text: &str| {
        let digits = text.bytes().all(|byte| byte.is_ascii_digit());
        let size = text.parse::<u16>().ok().filter(|_| digits)?;
        (1..=LARGEST).contains(&size).then_some(size)
    };
    Some(Stroke::Resize {
        rows: size(rows)?,
        columns: size(columns)?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keys(bytes: &[u8]) -> Vec<&[u8]> {
        let all = strokes(bytes).map(|stroke| match stroke {
            Stroke::Key(key) => key,
            Stroke::Resize { .. } => b"resize",
        });
        all.collect()
    }

    #[test]
    fn escape_sequences_and_characters_are_keys() {
        let keys = |bytes: &'static [u8]| keys(bytes);
        assert_eq!(keys(b"ab"), [b"a", b"b"]);
        assert_eq!(keys(b"\x1b[1;5Ax"), [&b"\x1b[1;5A"[..], b"x"]);
        assert_eq!(keys(b"\x1bOPy"), [&b"\x1bOP"[..], b"y"]);
        assert_eq!(keys(b"\x1bvz"), [&b"\x1bv"[..], b"z"]);
        assert_eq!(keys(b"\x1b[M !!q"), [&b"\x1b[M !!"[..], b"q"]);
        assert_eq!(keys("é€".as_bytes()), ["é".as_bytes(), "€".as_bytes()]);
        assert_eq!(keys("\x1bé".as_bytes()), ["\x1bé".as_bytes()]);
    }

    #[test]
    fn what_is_torn_stays_whole_byte_by_byte() {
        assert_eq!(keys(b"\x1b"), [b"\x1b"]);
        assert_eq!(keys(b"\x1b\x1b[A"), [&b"\x1b"[..], b"\x1b[A"]);
        assert_eq!(keys(b"\x1b[\x01"), [&b"\x1b["[..], b"\x01"]);
        assert_eq!(keys(b"\xe2\x82"), [b"\xe2", b"\x82"]);
        assert_eq!(keys(b"\xff\xc3("), [b"\xff", b"\xc3", b"("]);
        for bytes in [&b"\x1b[1;\x1bO\x1b\x1b\xf0\x9f"[..], b"\x1b[M!", b"\x1bO"] {
            assert_eq!(keys(bytes).concat(), bytes);
        }
    }

    #[test]
    fn a_window_is_resized_within_bounds() {
        let stroke = |bytes: &'static [u8]| strokes(bytes).next().unwrap();
        let resize = Stroke::Resize {
            rows: 30,
            columns: 500,
        };
        assert_eq!(stroke(b"\x1b[8;30;500t"), resize);
        for other in [
            &b"\x1b[8;0;80t"[..],
            b"\x1b[8;1;501t",
            b"\x1b[8;+1;1t",
            b"\x1b[8;1t",
        ] {
            assert_eq!(stroke(other), Stroke::Key(other));
        }
    }
}
