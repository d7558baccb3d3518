//! Keystrokes on the command line, written as in C.

/// The bytes that a text with the escapes of C stands for: `\r \n \t \a \b \f \v \e \\ \" \'`,
/// `\xHH` and `\NNN` in octal.
///
/// # Errors
/// What is wrong with the text, and where.
pub fn unescaped(text: &str) -> Result<Vec<u8>, String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((first, behind)) = rest.split_first() {
        if *first != b'\\' {
            bytes.push(*first);
            rest = behind;
            continue;
        }
        let Some((byte, length)) = escape(behind) else {
            let at = text.len() - rest.len();
            return Err(format!(
                "unknown escape at character {at}: write \\r, \\n, \\t, \\e, \\\\ or \\xHH"
            ));
        };
        bytes.push(byte);
        rest = &behind[length..];
    }
    Ok(bytes)
}

/// The byte that an escape stands for, and its length without the backslash.
fn escape(text: &[u8]) -> Option<(u8, usize)> {
    let simple = match text.first()? {
        b'r' => b'\r',
        b'n' => b'\n',
        b't' => b'\t',
        b'a' => 0x07,
        b'b' => 0x08,
        b'f' => 0x0c,
        b'v' => 0x0b,
        b'e' => 0x1b,
        same @ (b'\\' | b'"' | b'\'') => *same,
        b'x' => return number(text.get(1..3)?, 16).map(|byte| (byte, 3)),
        b'0'..=b'7' => {
            let digits = text
                .iter()
                .take(3)
                .take_while(|byte| (b'0'..=b'7').contains(*byte));
            let length = digits.count();
            return number(&text[..length], 8).map(|byte| (byte, length));
        }
        _ => return None,
    };
    Some((simple, 1))
}

fn number(digits: &[u8], radix: u32) -> Option<u8> {
    let all = digits
        .iter()
        .all(|digit| char::from(*digit).is_digit(radix));
    let text = std::str::from_utf8(digits).ok().filter(|_| all)?;
    u8::from_str_radix(text, radix).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escapes_are_those_of_c() {
        assert_eq!(unescaped("\\e:q!\\r").unwrap(), b"\x1b:q!\r");
        assert_eq!(
            unescaped("\\x03\\x1F\\0\\1771\\\\").unwrap(),
            b"\x03\x1f\0\x7f1\\"
        );
        assert_eq!(unescaped("é").unwrap(), "é".as_bytes());
    }

    #[test]
    fn what_is_no_escape_is_said_with_its_place() {
        for (text, at) in [
            ("ab\\q", 2),
            ("\\x1", 0),
            ("a\\", 1),
            ("\\777", 0),
            ("\\x+1", 0),
        ] {
            let said = unescaped(text).unwrap_err();
            assert!(
                said.starts_with(&format!("unknown escape at character {at}:")),
                "{text}: {said}"
            );
        }
    }
}
