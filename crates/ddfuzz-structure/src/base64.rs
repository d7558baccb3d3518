//! Base64: bytes in letters, digits and two signs, six bits in each.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

/// Returns `bytes` in Base64 with padding, in lines of `width` characters that are separated by
/// newlines, without a newline at the end. If `width` is 0, returns a single line.
pub fn encode(bytes: &[u8], width: usize) -> Vec<u8> {
    let written = STANDARD.encode(bytes).into_bytes();
    if width == 0 {
        return written;
    }
    let lines: Vec<&[u8]> = written.chunks(width).collect();
    lines.join(&b'\n')
}

/// Returns the bytes that [`encode`] turns into exactly `text` with the line width `width`; `None`
/// if there are no such bytes.
pub fn decode(text: &[u8], width: usize) -> Option<Vec<u8>> {
    let characters: Vec<u8> = match width {
        0 => text.to_vec(),
        _ => text.iter().copied().filter(|it| *it != b'\n').collect(),
    };
    let bytes = STANDARD.decode(characters).ok()?;
    (encode(&bytes, width) == text).then_some(bytes)
}

/// Returns true if a byte is one of the 64 characters of Base64 that stand for six bits each, which
/// the padding `=` does not.
pub fn is_digit(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read() {
        for width in [0, 4, 64] {
            for size in 0..130_u8 {
                let bytes: Vec<u8> = (0..size).map(|at| at.wrapping_mul(91)).collect();
                let text = encode(&bytes, width);
                assert_eq!(decode(&text, width), Some(bytes));
            }
        }
        assert_eq!(encode(b"any carnal", 8), b"YW55IGNh\ncm5hbA==");
        assert_eq!(decode(b"YW55IGNh\ncm5hbA==", 12), None);
        assert_eq!(decode(b"cm5hbB==", 0), None, "bits behind the last byte");
        assert_eq!(decode(b"cm5hbA=", 0), None);
    }
}
