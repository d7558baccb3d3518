//! Quoting for the POSIX shell.

/// Quotes bytes as one word for a POSIX shell, so that no character in it has a special meaning.
pub fn quoted(bytes: &[u8]) -> Vec<u8> {
    let mut word = vec![b'\''];
    for &byte in bytes {
        match byte {
            b'\'' => word.extend(br"'\''"),
            _ => word.push(byte),
        }
    }
    word.push(b'\'');
    word
}
