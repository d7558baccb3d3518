//! Words of the POSIX shell.

/// The bytes as one shell word that stands for nothing but themselves.
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
