//! Bytes as C writes them.

/// Bytes of a line of an array.
const WIDTH: usize = 12;

/// The elements of an array of bytes, in lines; of no bytes one 0, for C has no empty arrays.
pub(super) fn elements(bytes: &[u8]) -> String {
    if bytes.is_empty() {
        return "    0x00, // none of the input: its size is 0\n".to_owned();
    }
    let lines = bytes.chunks(WIDTH).map(|line| {
        let all: Vec<String> = line.iter().map(|byte| format!("0x{byte:02x},")).collect();
        format!("    {}\n", all.join(" "))
    });
    lines.collect()
}

/// The bytes as a string literal. Escapes are octal: those in hex would take in what follows.
pub(super) fn string(bytes: &[u8]) -> String {
    let mut text = String::from("\"");
    for &byte in bytes {
        match byte {
            // Two question marks may begin a trigraph.
            b'"' | b'\\' | b'?' => text.extend(['\\', byte as char]),
            b' '..=b'~' => text.push(byte as char),
            _ => text.push_str(&format!("\\{byte:03o}")),
        }
    }
    text.push('"');
    text
}
