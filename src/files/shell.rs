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

/// The same, without quotes where none are needed: for lines that people read.
pub fn word(bytes: &[u8]) -> Vec<u8> {
    let plain = |byte: &u8| byte.is_ascii_alphanumeric() || b"%+,-./:@_^".contains(byte);
    match !bytes.is_empty() && bytes.iter().all(plain) {
        true => bytes.to_vec(),
        false => quoted(bytes),
    }
}
